#include "ledger/status.hpp"

#include <algorithm>
#include <memory>
#include <slidestream/error.hpp>
#include <string>
#include <utility>

#include "ledger/attachments.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/schema.hpp"
#include "ledger/shard.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/start_notes.hpp"
#include "ledger/versions.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

/// Of a row, without its counts.
constexpr std::int64_t bytes_of_row = 1024;

std::int64_t list_digest(Database& database) {
  Statement select(database,
                   "SELECT count(*), count(CASE WHEN mine THEN 1 END) FROM slides WHERE position IS NOT NULL");
  const bool has_row = select.step();
  const std::int64_t slides = has_row ? select.integer(0) : 0;
  const std::int64_t mine = has_row ? select.integer(1) : 0;
  return static_cast<std::int64_t>(
      stable_hash(std::to_string(slides) + " " + std::to_string(mine) + " " + std::to_string(stored_shards(database))));
}

void add_damage(LedgerStatus& status, const char* what, std::uint64_t count) {
  if (count > 0) status.damage.push_back({what, count});
}

/// What can't be counts as nothing, so that no sum is too large. A digest finds it.
std::string possible(const std::string& column) {
  return "CASE WHEN typeof(" + column + ") = 'integer' AND " + column + " BETWEEN 0 AND 1 << 50 THEN " + column +
         " END";
}

/// A sum that is never too large: the largest integer takes its place.
std::string sum_of(const std::string& column) { return "CAST(total(" + possible(column) + ") AS INTEGER)"; }

/// Sizes that no file has count as nothing, and as damage.
void count_states(Database& database, LedgerStatus& status) {
  Statement select(database,
                   "SELECT state, mine, count(*), " + sum_of("size") + ", " + sum_of("windows") +
                       ", coalesce(sum(size NOT BETWEEN 0 AND 1 << 50), 0) FROM slides WHERE position IS NOT NULL "
                       "GROUP BY state, mine");
  std::uint64_t wrong_sizes = 0;
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
    wrong_sizes += static_cast<std::uint64_t>(select.integer(5));
  }
  add_damage(status, "slides of a size that no file has", wrong_sizes);
}

void count_artifacts(Database& database, LedgerStatus& status) {
  Statement select(database,
                   "SELECT count(*), " + sum_of("artifacts.bytes") +
                       " FROM artifacts JOIN slides ON slides.id = slide WHERE position IS NOT NULL AND mine AND "
                       "state = 'done'");
  if (!select.step()) return;
  status.artifacts = static_cast<std::uint64_t>(select.integer(0));
  status.artifact_bytes = static_cast<std::uint64_t>(select.integer(1));
}

/// Rows of slides that ended, and lists of their files, by their digests.
void check_rows(Database& database, std::int64_t most_checked, LedgerStatus& status) {
  Statement select(database, std::string("SELECT id, attached, coalesce(length(histogram), 0), digest IS row_digest(") +
                                 row_digest_columns +
                                 ") FROM slides WHERE position IS NOT NULL AND mine AND state IN ('done', 'failed')");
  AttachmentReader attachments(database);
  std::uint64_t rows = 0;
  std::uint64_t lists = 0;
  std::uint64_t checked = 0;
  try {
    for (std::int64_t bytes = 0; bytes < most_checked && select.step(); ++checked) {
      bytes += bytes_of_row + select.integer(2);
      if (select.integer(3) == 0) ++rows;
      const auto attached = unsigned_or_null(select, 1);
      if (!attached) continue;
      SlideResult slide;
      if (!attachments.read(select.integer(0), *attached, slide)) ++lists;
      bytes += bytes_of_row * static_cast<std::int64_t>(slide.artifacts.size() + slide.values.size());
    }
  } catch (const UnreadableError&) {
    // Nothing behind it can be read.
    ++rows;
    ++checked;
  }
  add_damage(status, "rows of slides that aren't what was written", rows);
  add_damage(status, "slides whose list of files isn't what was written", lists);
  status.unchecked = status.done + status.failed - std::min(status.done + status.failed, checked);
}

/// What SQLite itself finds: rows that their index doesn't have, and pages that can't be.
void check_pages(Database& database, LedgerStatus& status) {
  std::uint64_t faults = 0;
  try {
    Statement check(database, "PRAGMA main.integrity_check(slides)");
    while (check.step()) {
      if (check.text(0) != "ok") ++faults;
    }
  } catch (const UnreadableError&) {
    ++faults;
  }
  add_damage(status, "faults that SQLite finds in the table slides", faults);
}

/// As far as it takes a bounded time.
void check_ledger(Database& database, std::int64_t most_checked, LedgerStatus& status) {
  add_damage(status, "configurations that aren't what was written", has_damaged_configuration(database) ? 1 : 0);
  const std::uint64_t misplaced = misplaced_slides(database);
  add_damage(status, "slides whose place in the list can't be", misplaced);
  add_damage(status, "lists of slides that aren't what was written",
             misplaced == 0 && has_damaged_list(database) ? 1 : 0);
  check_rows(database, most_checked, status);
  if (status.unchecked > 0) return;
  // Those of other manifests and other shards, too.
  Statement rows(database,
                 "SELECT coalesce(sum(?1 + bytes), 0) FROM (SELECT coalesce(length(histogram), 0) AS bytes FROM slides "
                 "LIMIT ?2)");
  rows.bind(1, bytes_of_row).bind(2, most_checked / bytes_of_row + 1);
  if (rows.step() && rows.integer(0) <= most_checked) check_pages(database, status);
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
      "SELECT " + sum_of("size") +
          " FROM slides WHERE position IS NOT NULL AND mine AND state IN ('done', 'failed') AND ended_at >= ?1");
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

std::uint64_t misplaced_slides(Database& database) {
  Statement select(database,
                   "WITH placed AS (SELECT count(*) AS count FROM slides WHERE position IS NOT NULL) SELECT count - "
                   "(SELECT count(*) FROM (SELECT DISTINCT position FROM slides WHERE position >= 0 AND position < "
                   "(SELECT count FROM placed))) FROM placed");
  return select.step() ? static_cast<std::uint64_t>(select.integer(0)) : 0;
}

void seal_list(Database& database) {
  Statement store(database, "INSERT OR REPLACE INTO meta VALUES('list digest', ?1)");
  store.bind(1, list_digest(database)).run();
}

bool has_damaged_list(Database& database) {
  // Ledgers of earlier versions have no digest of it.
  Statement select(database, "SELECT value FROM meta WHERE name = 'list digest'");
  return select.step() && select.integer(0) != list_digest(database);
}

void check_list(Database& database) {
  if (misplaced_slides(database) > 0) database.fail_damaged("places in the list aren't what was written");
  if (has_damaged_list(database)) database.fail_damaged("the list of slides isn't what was written");
}

bool holds_run(Database& database) {
  Statement select(database,
                   "SELECT EXISTS (SELECT 1 FROM slides) OR EXISTS (SELECT 1 FROM meta WHERE name = 'joined')");
  return select.step() && select.integer(0) != 0;
}

void check_holds_run(Database& database) {
  if (holds_run(database)) return;
  const auto owner = read_owner(database);
  if (owner && is_alive(owner->process).value_or(true)) return;
  throw OutputError(database.file().string() +
                    ": holds no run: a start ended before its first slide; the same command starts it again");
}

LedgerStatus read_status(const std::filesystem::path& folder, std::int64_t most_checked) {
  const std::unique_ptr<Database> database = open_to_read(folder / ledger_name);
  database->execute("BEGIN");
  LedgerStatus status;
  count_states(*database, status);
  count_artifacts(*database, status);
  check_ledger(*database, most_checked, status);
  find_owner(*database, status);
  check_holds_run(*database);
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
