#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "ledger/database.hpp"
#include "ledger/identity.hpp"

namespace slidestream {

/// One slide of a run's manifest.
struct ManifestEntry {
  std::string path;       ///< as it was named
  std::string canonical;  ///< the file behind it: what tells slides apart
  bool mine = true;       ///< of this process's shard
};

/// What a run finds in its ledger.
struct LedgerStart {
  std::vector<std::size_t> todo;          ///< places in the manifest, in order
  std::size_t mine = 0;                   ///< slides of this shard
  std::size_t done = 0;                   ///< of them, done before
  std::size_t failed = 0;                 ///< of them, failed before, and not tried again
  std::size_t left_out = 0;               ///< slides of earlier runs in this folder that the manifest doesn't name
  std::uint64_t bytes = 0;                ///< of this shard's files
  std::uint64_t bytes_left = 0;           ///< of the files of `todo`
  std::vector<std::uint64_t> todo_bytes;  ///< of each file of `todo`
  std::vector<std::string> changed;       ///< paths of slides that had ended and are another file now
  std::vector<std::string> vanished;      ///< paths of slides that were done and can't be looked at now
};

/// The memory of a run: `run.sqlite` in the output folder, one row a slide, one transaction for each that ends. What is
/// in it was on the disk when the call returned. It belongs to one process at a time; each transaction makes sure of
/// that. All members may be called from any thread.
class Ledger {
 public:
  struct Options {
    /// How long an owner that can't be asked (another machine's) is watched for a sign of life.
    std::chrono::milliseconds watch{45'000};
    /// Called with one line before that.
    std::function<void(const std::string&)> on_watch;
  };

  /// Opens the ledger of `config.output.dir`, or makes it, and takes it over from a dead process.
  /// \throws ConfigError when its settings are others (naming the first and both values) or a living process has it
  /// (naming host and number); OutputError when it can't be used.
  Ledger(const Config& config, const Options& options);
  explicit Ledger(const Config& config) : Ledger(config, Options{}) {}
  /// Gives it back.
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Moves an earlier run in `config.output.dir` into its folder `earlier-N` and returns that; empty where there was
  /// none. \throws ConfigError when a living process has it; OutputError.
  static std::string move_aside(const Config& config, const Options& options);

  /// Enters the manifest and finds what is to be done.
  LedgerStart begin(const std::vector<ManifestEntry>& manifest, bool retry_failed);

  /// Enters a manifest whose files aren't looked at, for `import`.
  void adopt(const std::vector<ManifestEntry>& manifest);
  /// A slide that another ledger has.
  struct Imported {
    SlideResult result;  ///< without the map's values
    std::optional<SlideIdentity> identity;
    std::int64_t attempts = 0;
    std::int64_t ended_at = 0;
    /// Visits the parts of its map, in order.
    std::function<void(const std::function<void(std::span<const std::byte>)>& visit)> for_each_map_part;
  };
  enum class Import { added, known, different };
  /// Takes over a slide of the manifest. One that is done goes before one that failed; of two that say the same, the
  /// one is kept that any order of imports keeps. `different`: both are done and don't say the same, or another file
  /// under that name failed later; nothing changes.
  Import import(std::size_t slide, const Imported& other);
  /// Waits until all imports are on the disk.
  void sync();

  /// Notes that a slide of the manifest is being worked on.
  void started(std::size_t slide);
  /// Keeps a slide that ended, with its map and the name that the map's file is to have. A slide's file that changed
  /// meanwhile makes it a failed one, also in `result`.
  void ended(std::size_t slide, SlideResult& result);
  /// Notes the name of a map's file that was written again.
  void map_renamed(std::size_t slide, const std::string& name);
  /// Shows others that this process lives: to be called every few seconds. \throws OutputError when another took over.
  void beat();

  const std::filesystem::path& file() const noexcept { return database_.file(); }

 private:
  struct Slide {
    std::int64_t id = 0;
    std::string path;
    SlideIdentity identity;  ///< when it was started
    bool known = false;      ///< the file could be looked at then
  };

  void take_over(const Options& options);
  void check_settings(const Config& config);
  void forget_manifest();
  bool has_map(std::int64_t id, const Imported& other);
  void release();
  /// A transaction of this process: the ledger still belongs to it. What is only `hurried` may be lost with the power.
  enum class Durability { full, hurried };
  template <class Work>
  void change(Work&& work, Durability durability = Durability::full);

  ContentHashPolicy hash_policy_;
  std::mutex mutex_;  ///< of what follows
  Database database_;
  bool wal_ = false;
  std::string token_;          ///< this process's, in the ledger
  std::vector<Slide> slides_;  ///< as the manifest
  std::vector<std::byte> histogram_;
};

}  // namespace slidestream
