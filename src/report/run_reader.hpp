#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "ledger/database.hpp"

namespace slidestream::report {

/// A slide of a run that ended.
struct LedgerSlide {
  SlideResult result;     ///< without the map's values
  std::string canonical;  ///< the file behind the path, absolute: it is found from any folder
  std::int64_t id = 0;    ///< for `read_map`
};

/// Reads a run from its ledger as it is at one moment, also while the run goes on. The ledger is asked rather than the
/// files beside it because those may be up to a checkpoint older, name slides by paths that hold only in the folder
/// where the run was started, and come in two formats of maps. Used by one thread.
class RunReader {
 public:
  /// \throws OutputError when there is no ledger that can be read, or it holds no run (`check_holds_run`).
  explicit RunReader(const std::filesystem::path& folder);

  const Config& config() const noexcept { return config_; }
  /// Whether what is there was joined from other folders.
  bool is_joined();
  /// Slides of the manifest that are neither done nor failed, and no other shard's.
  std::uint64_t unfinished();
  /// Those that failed, and are no other shard's.
  std::uint64_t failed();
  /// Those that an earlier run did here, and that are another shard's now.
  std::uint64_t of_others();
  /// Visits the slides that are done or failed, and are no other shard's, in the order of the manifest; the same ones
  /// every time.
  void for_each(const std::function<void(const LedgerSlide&)>& visit);
  /// Fills in the values of a slide's map. False when the ledger hasn't what was written.
  bool read_map(std::int64_t id, WindowMap& map);

 private:
  std::uint64_t count_own(const char* condition);

  std::unique_ptr<Database> database_;
  Config config_;
};

}  // namespace slidestream::report
