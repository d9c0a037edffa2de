#include "ledger/slide_counts.hpp"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>

#include "ledger/database.hpp"

namespace slidestream {

namespace {

/// What is counted; no more says anything else.
constexpr std::int64_t most_counts = 1000;
/// Slides that have a count; a run has far fewer under way.
constexpr std::size_t most_counted = 10'000;

}  // namespace

SlideCounts counts_of_undone(Database& database, std::string_view name) {
  SlideCounts stored;
  Statement read(database, "SELECT value FROM meta WHERE name = ?1");
  read.bind(1, name);
  if (read.step()) {
    std::istringstream text(read.text(0));
    for (std::int64_t id = 0, count = 0; stored.size() < most_counted && text >> id >> count;) {
      if (count > 0) stored[id] = std::min<std::int64_t>(count, most_counts);
    }
  }
  SlideCounts undone;
  Statement state(database, "SELECT state FROM slides WHERE id = ?1");
  for (const auto& [id, count] : stored) {
    state.bind(1, id);
    if (state.step() && (state.text(0) == "pending" || state.text(0) == "running")) undone[id] = count;
    state.reset();
  }
  return undone;
}

void store_counts(Database& database, std::string_view name, const SlideCounts& counts) {
  std::string text;
  for (const auto& [id, count] : counts) text += std::to_string(id) + " " + std::to_string(count) + "\n";
  Statement store(database, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
  store.bind(1, name).bind_blob(2, std::string_view(text)).run();
}

SlideCounts count_running(Database& database, std::string_view name) {
  SlideCounts now = counts_of_undone(database, name);
  Statement running(database, "SELECT id FROM slides WHERE state = 'running'");
  while (running.step()) ++now[running.integer(0)];
  store_counts(database, name, now);
  return now;
}

}  // namespace slidestream
