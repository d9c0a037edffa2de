#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>

namespace slidestream {

/// What a start would find in the ledger of its folder for results.
struct LedgerPreview {
  std::size_t done = 0;     ///< slides that would be skipped
  std::size_t failed = 0;   ///< slides that failed, and would be skipped without --retry-failed
  std::size_t changed = 0;  ///< slides that ended, and whose file has another size or time now
  std::string refusal;      ///< why it wouldn't start; empty: it would
};

/// Looks without changing anything; file contents aren't read. `canonical` is as long as `slides`. Nothing where there
/// is no ledger. \throws OutputError when it can't be read.
std::optional<LedgerPreview> preview_start(const Config& config, const std::vector<std::string>& slides,
                                           const std::vector<std::string>& canonical);

}  // namespace slidestream
