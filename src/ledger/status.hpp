#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

#include "ledger/owner.hpp"

namespace slidestream {

/// How far a run is, as its ledger says at one moment.
struct LedgerStatus {
  std::uint64_t slides = 0;  ///< of this shard
  std::uint64_t other_shards = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t running = 0;
  std::uint64_t pending = 0;
  std::uint64_t bytes = 0;  ///< of the files
  std::uint64_t bytes_done = 0;
  std::uint64_t windows = 0;
  std::uint64_t artifacts = 0;  ///< files that were made of the slides that are done
  std::uint64_t artifact_bytes = 0;
  std::optional<Owner> owner;          ///< of a run that hasn't ended, or died
  std::optional<bool> owner_is_alive;  ///< nothing: it is another machine's
  double bytes_per_second = 0.0;       ///< of the slides that ended since a living owner began; 0: not known
  std::optional<double> seconds_left;
  std::vector<std::string> running_paths;
  struct Failure {
    std::string path;
    SlideFailure why;
    std::int64_t attempts = 0;
  };
  std::vector<Failure> failures;  ///< in order
};

/// \throws OutputError where the ledger can't be read, or no run came as far as its slides.
LedgerStatus read_status(const std::filesystem::path& folder);

}  // namespace slidestream
