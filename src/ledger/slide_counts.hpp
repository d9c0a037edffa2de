#pragma once

#include <cstdint>
#include <map>
#include <string_view>

namespace slidestream {

class Database;

/// By the rows of slides.
using SlideCounts = std::map<std::int64_t, std::int64_t>;

// Of slides that aren't done or failed: text in `meta`. No version of the tables knows it, and no result depends on it.
// Within a transaction of the caller's.

/// Processes that died while they worked on the slide.
inline constexpr std::string_view deaths_name = "deaths";
/// Processes that ended without memory or threads while they worked on it.
inline constexpr std::string_view shortages_name = "shortages";
/// Runs that ended as a file of it couldn't be written.
inline constexpr std::string_view unwritten_name = "unwritten";

/// Without those of slides that are done or failed.
SlideCounts counts_of_undone(Database& database, std::string_view name);

void store_counts(Database& database, std::string_view name, const SlideCounts& counts);

/// Adds one to each slide that is being worked on, by the ledger.
SlideCounts count_running(Database& database, std::string_view name);

}  // namespace slidestream
