#include "ledger/status.hpp"

#include <algorithm>
#include <memory>
#include <slidestream/error.hpp>
#include <utility>

#include "ledger/schema.hpp"
#include "ledger/start_notes.hpp"
#include "ledger/versions.hpp"

namespace slidestream {

namespace {

void count_states(Database& database, LedgerStatus& status) {
  Statement select(database,
                   "SELECT state, mine, count(*), coalesce(sum(size), 0), coalesce(sum(windows), 0) FROM slides WHERE "
                   "position IS NOT NULL GROUP BY state, mine");
  while (select.step()) {
    const auto count = static_cast<std::uint64_t>(select.integer(2));
    if (select.integer(1) == 0) {
      status.other_shards += count;
      continue;
    }
    const std::string state = select.text(0);
    const auto bytes = static_cast<std::uint64_t>(select.integer(3));
    status.slides += count;
    status.bytes += bytes;
    if (state == "done") status.done += count;
    if (state == "failed") status.failed += count;
    if (state == "running") status.running += count;
    if (state == "pending") status.pending += count;
    if (state == "done" || state == "failed") status.bytes_done += bytes;
    if (state == "done") status.windows += static_cast<std::uint64_t>(select.integer(4));
  }
}

void count_artifacts(Database& database, LedgerStatus& status) {
  Statement select(database,
                   "SELECT count(*), coalesce(sum(artifacts.bytes), 0) FROM artifacts JOIN slides ON slides.id = slide "
                   "WHERE position IS NOT NULL AND mine AND state = 'done'");
  if (!select.step()) return;
  status.artifacts = static_cast<std::uint64_t>(select.integer(0));
  status.artifact_bytes = static_cast<std::uint64_t>(select.integer(1));
}

/// The process that has the ledger. One of this machine that ended, and couldn't give the ledger back, has left no
/// notes beside it: its slides wait for the next. Earlier versions had no notes.
void find_owner(Database& database, LedgerStatus& status) {
  status.owner = read_owner(database);
  if (!status.owner) return;
  status.owner_is_alive = is_alive(status.owner->process);
  Statement version(database, "PRAGMA user_version");
  const bool leaves_notes = version.step() && version.integer(0) == current_ledger_version;
  if (status.owner_is_alive != false || !leaves_notes || has_notes(database)) return;
  status.owner.reset();
  status.owner_is_alive.reset();
  status.pending += std::exchange(status.running, 0);
}

/// Whether a start came as far as its slides, of whichever shard. What was joined may have none.
bool holds_run(Database& database) {
  Statement select(database,
                   "SELECT EXISTS (SELECT 1 FROM slides) OR EXISTS (SELECT 1 FROM meta WHERE name = 'joined')");
  return select.step() && select.integer(0) != 0;
}

void list_running(Database& database, LedgerStatus& status) {
  if (status.running == 0) return;
  Statement running(database,
                    "SELECT path FROM slides WHERE position IS NOT NULL AND mine AND state = 'running' ORDER BY "
                    "position");
  while (running.step()) status.running_paths.push_back(running.text(0));
}

/// Slides that were started since the last commit.
void add_started(Database& database, LedgerStatus& status) {
  Statement slide(database,
                  "SELECT path, state FROM slides WHERE id = ?1 AND position IS NOT NULL AND mine AND state IN "
                  "('pending', 'failed')");
  for (const std::int64_t id : notes_to_enter(database)) {
    slide.bind(1, id);
    if (!slide.step()) continue;
    status.running_paths.push_back(slide.text(0));
    ++status.running;
    --(slide.text(1) == "failed" ? status.failed : status.pending);
    slide.reset();
  }
}

void estimate(Database& database, LedgerStatus& status) {
  // A dead process has no speed.
  if (!status.owner || !status.owner_is_alive.value_or(true)) return;
  Statement select(
      database,
      "SELECT coalesce(sum(size), 0) FROM slides WHERE position IS NOT NULL AND mine AND state IN ('done', "
      "'failed') AND ended_at >= ?1");
  select.bind(1, status.owner->since);
  if (!select.step()) return;
  // Both times are the owner's clock's.
  const std::int64_t seconds = std::max<std::int64_t>(1, status.owner->beat_at - status.owner->since);
  status.bytes_per_second = static_cast<double>(select.integer(0)) / static_cast<double>(seconds);
  if (status.bytes_per_second > 0) {
    status.seconds_left = static_cast<double>(status.bytes - status.bytes_done) / status.bytes_per_second;
  }
}

}  // namespace

LedgerStatus read_status(const std::filesystem::path& folder) {
  const std::unique_ptr<Database> database = open_to_read(folder / ledger_name);
  database->execute("BEGIN");
  LedgerStatus status;
  count_states(*database, status);
  count_artifacts(*database, status);
  find_owner(*database, status);
  const bool is_in_use = status.owner && status.owner_is_alive.value_or(true);
  if (!is_in_use && !holds_run(*database)) {
    throw OutputError(database->file().string() +
                      ": holds no run: a start ended before its first slide; the same command starts it again");
  }
  estimate(*database, status);
  list_running(*database, status);
  add_started(*database, status);
  Statement failed(
      *database,
      "SELECT path, stage, tile, cause, attempts FROM slides WHERE position IS NOT NULL AND mine AND (state = "
      "'failed' OR (state = 'done' AND stage IS NOT NULL)) ORDER BY position");
  while (failed.step()) {
    SlideFailure why{failed.text(1), {}, failed.text(3)};
    if (!failed.is_null(2)) why.tile = failed.integer(2);
    status.failures.push_back({failed.text(0), std::move(why), failed.integer(4)});
  }
  return status;
}

}  // namespace slidestream
