#include "ledger/status.hpp"

#include <algorithm>
#include <memory>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ledger/attachments.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/merge_places.hpp"
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

bool is_of_volumes(Database& database) {
  Statement select(database,
                   "SELECT EXISTS (SELECT 1 FROM settings WHERE name = 'operators.run' AND value = '[\"volume\"]')");
  return select.step() && select.integer(0) != 0;
}

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
    if (state == "done" || state == "failed") {
      status.bytes_done += bytes;
      if (SlideClaim::of(select.integer(1), false).is_uncertain()) status.in_doubt += count;
    }
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
                    "SELECT id FROM slides WHERE position IS NOT NULL AND mine AND state = 'running' ORDER BY "
                    "position");
  while (running.step()) status.running_rows.push_back(running.integer(0));
}

/// Slides that were started since the last commit.
void add_started(Database& database, LedgerStatus& status) {
  Statement slide(database,
                  "SELECT state FROM slides WHERE id = ?1 AND position IS NOT NULL AND mine AND state IN "
                  "('pending', 'failed')");
  for (const std::int64_t id : notes_to_enter(database)) {
    slide.bind(1, id);
    if (!slide.step()) continue;
    status.running_rows.push_back(id);
    ++status.running;
    --(slide.text(0) == "failed" ? status.failed : status.pending);
    slide.reset();
  }
}

/// What `list_failures` and `read_failures` call a failure.
const std::string is_failure = "mine AND (state = 'failed' OR (state = 'done' AND stage IS NOT NULL))";

void list_failures(Database& database, LedgerStatus& status) {
  Statement failed(database,
                   "SELECT id FROM slides WHERE position IS NOT NULL AND " + is_failure + " ORDER BY position");
  while (failed.step()) status.failure_rows.push_back(failed.integer(0));
}

std::string shown_text(const Statement& row, int column) {
  const std::string_view text = row.bytes(column);
  if (text.size() <= most_status_text) return std::string(text);
  return std::string(text.substr(0, most_status_text)) + " ...";
}

/// Texts of rows that are held at a time; one row may go beyond.
constexpr std::size_t most_held_text = std::size_t{1} << 20;

/// The paths of rows from number `at` on, as many as are held at a time, and moves `at` behind them.
std::vector<std::string> read_paths(Database& database, const std::vector<std::int64_t>& rows, std::size_t& at) {
  std::vector<std::string> paths;
  Statement select(database, "SELECT path FROM slides WHERE id = ?1");
  for (std::size_t bytes = 0; at < rows.size() && bytes < most_held_text; ++at) {
    if (!select.bind(1, rows[at]).step()) continue;
    paths.push_back(shown_text(select, 0));
    bytes += sizeof(std::string) + paths.back().size();
    select.reset();
  }
  return paths;
}

std::vector<LedgerStatus::Failure> read_failures(Database& database, const std::vector<std::int64_t>& rows,
                                                 std::size_t& at, std::size_t end) {
  std::vector<LedgerStatus::Failure> failures;
  Statement select(database, "SELECT path, stage, tile, cause, attempts FROM slides WHERE id = ?1 AND " + is_failure);
  for (std::size_t bytes = 0; at < end && bytes < most_held_text; ++at) {
    if (!select.bind(1, rows[at]).step()) continue;
    SlideFailure why{shown_text(select, 1), {}, shown_text(select, 3)};
    if (!select.is_null(2)) why.tile = select.integer(2);
    failures.push_back({shown_text(select, 0), std::move(why), select.integer(4)});
    const LedgerStatus::Failure& last = failures.back();
    bytes += sizeof(last) + last.path.size() + last.why.stage.size() + last.why.cause.size();
    select.reset();
  }
  return failures;
}

/// \throws OutputError where a row can't be read: later, half of them would be shown.
void check_texts(Database& database, const LedgerStatus& status) {
  for (std::size_t at = 0; at < status.running_rows.size();) read_paths(database, status.running_rows, at);
  const std::size_t end = status.failure_rows.size();
  for (std::size_t at = 0; at < end;) read_failures(database, status.failure_rows, at, end);
}

void estimate(Database& database, LedgerStatus& status) {
  // A dead process has no speed.
  if (!status.owner || !status.owner_is_alive.value_or(true)) return;
  Statement select(database, "SELECT " + sum_of("size") +
                                 " FROM slides WHERE position IS NOT NULL AND mine AND state IN ('done', 'failed') AND "
                                 "ended_at >= 1000000 * ?1");
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

StatusReader::StatusReader(const std::filesystem::path& folder, std::int64_t most_checked)
    : database_(open_to_read(folder / ledger_name)) {
  database_->execute("BEGIN");
  status_.of_volumes = is_of_volumes(*database_);
  count_states(*database_, status_);
  count_artifacts(*database_, status_);
  check_ledger(*database_, most_checked, status_);
  find_owner(*database_, status_);
  check_holds_run(*database_);
  estimate(*database_, status_);
  list_running(*database_, status_);
  add_started(*database_, status_);
  list_failures(*database_, status_);
  check_texts(*database_, status_);
  database_->execute("COMMIT");
}

StatusReader::~StatusReader() = default;

void StatusReader::each_running(const std::function<void(const std::string& path)>& visit) {
  for (std::size_t at = 0; at < status_.running_rows.size();) {
    for (const std::string& path : read_paths(*database_, status_.running_rows, at)) visit(path);
  }
}

void StatusReader::each_failure(const std::function<void(const LedgerStatus::Failure& failure)>& visit,
                                std::size_t most) {
  const std::size_t end = std::min(most, status_.failure_rows.size());
  for (std::size_t at = 0; at < end;) {
    for (const LedgerStatus::Failure& failure : read_failures(*database_, status_.failure_rows, at, end))
      visit(failure);
  }
}

}  // namespace slidestream
