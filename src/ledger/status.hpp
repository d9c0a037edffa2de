#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

#include "ledger/owner.hpp"

namespace slidestream {

class Database;

/// How far a run is, as its ledger says at one moment.
struct LedgerStatus {
  bool of_volumes = false;   ///< "slides" are 3-D images
  std::uint64_t slides = 0;  ///< of this shard
  std::uint64_t other_shards = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t running = 0;
  std::uint64_t pending = 0;
  std::uint64_t in_doubt = 0;  ///< of joined results, ended slides that the merge ended with 3 for
  std::uint64_t bytes = 0;     ///< of the files
  std::uint64_t bytes_done = 0;
  std::uint64_t windows = 0;
  std::uint64_t artifacts = 0;  ///< files that were made of the slides that are done
  std::uint64_t artifact_bytes = 0;
  std::optional<Owner> owner;          ///< of a run that hasn't ended, or died
  std::optional<bool> owner_is_alive;  ///< nothing: it is another machine's
  double bytes_per_second = 0.0;       ///< of the slides that ended since a living owner began; 0: not known
  std::optional<double> seconds_left;
  std::vector<std::int64_t> running_rows;  ///< in order; `StatusReader` has what they say
  std::vector<std::int64_t> failure_rows;  ///< so, of slides that failed, or on which an operator did
  struct Failure {
    std::string path;
    SlideFailure why;
    std::int64_t attempts = 0;
  };
  struct Damage {
    std::string what;
    std::uint64_t count = 0;
  };
  std::vector<Damage> damage;   ///< one for each kind; what it concerns counts above as the ledger says
  std::uint64_t unchecked = 0;  ///< slides that ended, and weren't looked at for damage
};

/// Whether a start came as far as its slides, of whichever shard. What was joined may have none.
bool holds_run(Database& database);

/// \throws OutputError where the ledger holds no run, unless a process has it that may live.
void check_holds_run(Database& database);

/// Bytes of rows that a status reads to check them: some tenths of a second.
inline constexpr std::int64_t most_checked_bytes = std::int64_t{128} << 20;

/// How many slides have a place that the list can't have given them: it gives places from 0 on, each once.
/// \throws OutputError.
std::uint64_t misplaced_slides(Database& database);

/// Notes in a ledger, within a transaction that placed all slides, a digest of how many the list and its shard have.
void seal_list(Database& database);

/// Whether slides have left the list or come to it, or another shard, since it was sealed.
bool has_damaged_list(Database& database);

/// \throws DamagedError where the list of slides isn't what was written, as far as places and the seal say.
void check_list(Database& database);

/// Bytes of a path, stage or cause that a status shows; " ..." stands for the rest. No program writes a longer one.
inline constexpr std::size_t most_status_text = std::size_t{16} << 10;

/// A run's status, and row by row what its ledger has of single slides. It holds 8 bytes per such slide, and some texts
/// at a time, whatever the rows say.
class StatusReader {
 public:
  /// \param most_checked  rows of slides that ended are checked until so many bytes of them were read; beyond, SQLite's
  /// own check is left out, too. \throws OutputError where the ledger can't be read, or no run came as far as its
  /// slides.
  explicit StatusReader(const std::filesystem::path& folder, std::int64_t most_checked = most_checked_bytes);
  ~StatusReader();

  const LedgerStatus& status() const noexcept { return status_; }

  /// Visits paths of slides that were under way. While a visit lasts, no lock keeps a run from its ledger. Both throw
  /// OutputError.
  void each_running(const std::function<void(const std::string& path)>& visit);
  /// The same for the first `most` slides of `failure_rows`. One that is begun anew meanwhile is left out.
  void each_failure(const std::function<void(const LedgerStatus::Failure& failure)>& visit,
                    std::size_t most = std::numeric_limits<std::size_t>::max());

 private:
  std::unique_ptr<Database> database_;
  LedgerStatus status_;
};

}  // namespace slidestream
