#include "ledger/shard_lists.hpp"

#include <cstddef>
#include <deque>
#include <string_view>

#include "config/suggest.hpp"

namespace slidestream {

namespace {

/// What a ledger has of a slide.
enum class Listing { unknown, former, listed };

struct ListFault {
  std::size_t count = 0;
  std::string first;

  void add(const std::string& path) {
    if (count++ == 0) first = path;
  }
};

void add_list_line(const std::string& folder, const ListFault& fault, const char* verb, const char* what,
                   const char* remedy, std::vector<std::string>& lines) {
  if (fault.count == 0) return;
  const bool is_one = fault.count == 1;
  lines.push_back(folder + ": " + verb + " " + std::to_string(fault.count) + (is_one ? " slide " : " slides ") + what +
                  (is_one ? ": " : ", the first: ") + one_line(fault.first) + remedy);
}

}  // namespace

std::vector<std::string> lines_of_lists(const std::vector<ListHolder>& holders,
                                        const std::vector<std::pair<std::string, std::string>>& slides) {
  std::deque<Statement> selects;
  for (const ListHolder& holder : holders) {
    selects.emplace_back(holder.database, "SELECT position IS NOT NULL FROM slides WHERE canonical = ?1");
  }
  std::vector<ListFault> surplus(holders.size());
  std::vector<ListFault> lacking(holders.size());
  std::vector<Listing> listings(holders.size());
  for (const auto& [canonical, path] : slides) {
    bool is_listed = false;
    bool is_former = false;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      Statement& select = selects[i];
      select.bind_blob(1, std::string_view(canonical));
      listings[i] = !select.step() ? Listing::unknown : select.integer(0) == 0 ? Listing::former : Listing::listed;
      select.reset();
      if (!holders[i].is_shard) continue;
      is_listed = is_listed || listings[i] == Listing::listed;
      is_former = is_former || listings[i] == Listing::former;
    }
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const bool has = listings[i] == Listing::listed;
      if (!holders[i].is_shard) {
        if (has && !is_listed) surplus[i].add(path);
      } else if (is_former && has) {
        // One of the two lists is the older one.
        surplus[i].add(path);
      } else if (is_listed && !is_former && !has) {
        lacking[i].add(path);
      }
    }
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const std::string& folder = holders[i].folder;
    if (holders[i].is_shard) {
      constexpr const char* again = "; start this shard again";
      add_list_line(folder, surplus[i], "lists", "that left the list of other shards",
                    "; start the shards whose list is older again", lines);
      add_list_line(folder, lacking[i], "lacks", "of the list of other shards", again, lines);
    } else {
      add_list_line(folder, surplus[i], "has", "that no shard lists", "; leave this folder out if its list is earlier",
                    lines);
    }
  }
  return lines;
}

std::string line_of_left_out(const std::string& folder, Database& database) {
  Statement select(database, "SELECT count(*) FROM slides WHERE position IS NULL AND state IN ('done', 'failed')");
  if (!select.step() || select.integer(0) == 0) return {};
  return folder + ": " + std::to_string(select.integer(0)) +
         (select.integer(0) == 1 ? " slide of its earlier runs wasn't among its last inputs, and is left out"
                                 : " slides of its earlier runs weren't among its last inputs, and are left out");
}

}  // namespace slidestream
