#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ledger/database.hpp"

namespace slidestream {

/// A ledger that is joined with others: a shard's, or one of joined results.
struct ListHolder {
  std::string folder;
  Database& database;
  bool is_shard = false;
};

/// Shards of one run have the same list of slides. A line for each holder that was started with another list than the
/// shards, or that joined slides which none of them lists.
/// \param slides  canonical paths, and paths for people, of the slides that not every shard lists
std::vector<std::string> lines_of_lists(const std::vector<ListHolder>& holders,
                                        const std::vector<std::pair<std::string, std::string>>& slides);

/// Counts slides that ended, and that the last start in the folder didn't name; empty: there are none. They are in none
/// of its files of results, either.
std::string line_of_left_out(const std::string& folder, Database& database);

}  // namespace slidestream
