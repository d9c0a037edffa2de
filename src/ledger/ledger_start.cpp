#include <algorithm>
#include <chrono>
#include <map>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "ledger/artifact_files.hpp"
#include "ledger/image_names.hpp"
#include "ledger/ledger.hpp"
#include "ledger/schema.hpp"
#include "ledger/shard.hpp"
#include "ledger/slide_counts.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/status.hpp"
#include "ledger/stored_map.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

/// What a manifest's entries are entered by: prepared once, for there may be a million of them.
struct Ledger::EntryStatements {
  EntryStatements(Database& database, std::size_t bins)
      : select(database, "SELECT " + row_columns +
                             ", id, size, modified, hash, side, position, mine FROM slides WHERE canonical = ?1"),
        insert(database, "INSERT INTO slides(canonical, path, position, mine, size) VALUES(?1, ?2, ?3, ?4, ?5)"),
        place(database, "UPDATE slides SET path = ?1, position = ?2, mine = ?3, state = ?4 WHERE id = ?5"),
        identify(database, "UPDATE slides SET size = ?1, modified = ?2, hash = ?3, side = ?4 WHERE id = ?5"),
        rows(database, bins) {}
  Statement select;
  Statement insert;
  Statement place;
  Statement identify;
  RowReader rows;
};

/// Whether a slide that ended is to be done again, since its file is another now. One that isn't gets what is new of
/// its file.
bool Ledger::is_other_file(EntryStatements& with, const SlideIdentity& before, SlideIdentity& now, bool done,
                           const Slide& slide, const std::string& path) const {
  if (has_changed(before, now, hash_policy_, path)) return true;
  // What was done without a hash gets it at the first start that asks for it.
  const bool first_hash = hash_policy_ == ContentHashPolicy::always && !before.hash;
  if (done && first_hash) now.hash = content_of(path);
  if (done && (first_hash || !before.same_state(now))) {
    bind_identity(with.identify, 1, now);
    with.identify.bind(5, slide.id).run();
  }
  return false;
}

/// Looks at no more maps once they had as many bytes as a start may read.
bool Ledger::has_damaged_map(std::int64_t slide, std::optional<std::uint64_t> digest, const WindowMap& size) {
  constexpr std::int64_t bytes_of_window = 8;
  if (map_bytes_left_ == 0) return false;
  const Int128 bytes = Int128{size.columns} * size.rows * bytes_of_window;
  map_bytes_left_ -= bytes < Int128{map_bytes_left_} ? static_cast<std::uint64_t>(bytes) : map_bytes_left_;
  return digest_of(parts_of(database_, slide)) != digest;
}

std::string Ledger::enter(EntryStatements& with, std::size_t place, const ManifestEntry& entry,
                          std::optional<SlideIdentity>& now, std::string_view retried_cause, LedgerStart& start) {
  Slide& slide = slides_[place];
  constexpr int more = row_column_count;
  with.select.bind_blob(1, std::string_view(entry.canonical));
  if (!with.select.step()) {
    with.insert.bind_blob(1, std::string_view(entry.canonical)).bind_blob(2, std::string_view(entry.path));
    with.insert.bind(3, static_cast<std::int64_t>(place)).bind(4, std::int64_t{entry.mine});
    if (now) {
      with.insert.bind(5, static_cast<std::int64_t>(now->size));
    } else {
      with.insert.bind_null(5);
    }
    with.insert.run();
    slide.id = database_.last_row();
    return "pending";
  }
  slide.id = with.select.integer(more);
  std::string state = with.select.text(1);
  const bool has_ended = state == "done" || state == "failed";
  const bool ended = entry.mine && has_ended;
  const std::string before_start = state;
  const bool renamed = with.select.bytes(0) != entry.path;
  const bool has_place = !with.select.is_null(more + 5) &&
                         with.select.integer(more + 5) == static_cast<std::int64_t>(place) &&
                         with.select.integer(more + 6) == std::int64_t{entry.mine};
  const SlideIdentity before{static_cast<std::uint64_t>(with.select.integer(more + 1)), with.select.integer(more + 2),
                             unsigned_or_null(with.select, more + 3), unsigned_or_null(with.select, more + 4)};
  bool readable = true;
  std::string unmade;
  const auto map_digest = unsigned_or_null(with.select, map_digest_column);
  WindowMap map;
  std::vector<Artifact> kept;
  try {
    if (has_ended) {
      SlideResult result = with.rows.read(with.select);
      unmade = first_unmade(database_.file().parent_path(), result.artifacts);
      slide.incomplete = result.done && !result.complete();
      slide.is_retried = !retried_cause.empty() && result.failure.cause.find(retried_cause) != std::string::npos;
      if (ended && state == "done") kept = std::move(result.artifacts);
      map = std::move(result.map);
    }
  } catch (const OutputError& error) {
    readable = false;
    if (ended) start.damaged.emplace_back(error.what());
  }
  with.select.reset();
  if (!readable) {
    // Another shard's is no row to keep, either.
    state = "pending";
  } else if (ended && now && is_other_file(with, before, *now, state == "done", slide, entry.path)) {
    state = "pending";
    const bool same_file = before.side != now->side && before.size == now->size && before.modified == now->modified;
    (same_file ? start.other_inputs : start.changed).push_back(entry.path);
  } else if (ended && (now || state == "done")) {
    const bool damaged = unmade.empty() && state == "done" && has_damaged_map(slide.id, map_digest, map);
    if (now && (damaged || !unmade.empty())) {
      state = "pending";
      (damaged ? start.damaged : start.unmade)
          .push_back(damaged ? damaged_map_text(database_.file(), entry.path) : entry.path + ": " + unmade);
    } else if (damaged || !unmade.empty()) {
      start.lacking.push_back(entry.path + ": " + (damaged ? "its map is damaged" : unmade));
    } else if (!now) {
      start.vanished.push_back(entry.path);
    }
  }
  if (state == "done") start.links += links_among(database_.file().parent_path(), kept, start.first_link);
  // A row that stays as it is isn't written: rows may have kilobytes each, and a ledger a million of them.
  if (renamed || !has_place || state != before_start) {
    with.place.bind_blob(1, std::string_view(entry.path)).bind(2, static_cast<std::int64_t>(place));
    with.place.bind(3, std::int64_t{entry.mine}).bind(4, std::string_view(state)).bind(5, slide.id).run();
  }
  if (renamed && (state == "done" || state == "failed")) seal_row(database_, slide.id);
  return state;
}

void Ledger::note_unwritten(const std::set<std::size_t>& slides) {
  change([&] {
    SlideCounts counts = counts_of_undone(database_, unwritten_name);
    for (const std::size_t slide : slides) ++counts[slides_.at(slide).id];
    store_counts(database_, unwritten_name, counts);
  });
}

/// \throws WatchStopped where the start was asked to stop. Says once that the ledger is read when that takes long.
void Ledger::check_start(std::chrono::steady_clock::time_point since, std::size_t slides) {
  const std::string folder = database_.file().parent_path().string();
  if (watch_.is_stopped && watch_.is_stopped()) throw WatchStopped(folder + ": interrupted while the ledger was read");
  if (has_told_ || std::chrono::steady_clock::now() - since < told_after_) return;
  has_told_ = true;
  if (watch_.on_watch) {
    watch_.on_watch(folder + ": reading the ledger of " + std::to_string(slides) +
                    (slides == 1 ? " slide" : " slides"));
  }
}

LedgerStart Ledger::begin(const std::vector<ManifestEntry>& manifest, bool retry_failed, std::string_view retried_cause,
                          int shards) {
  LedgerStart start;
  const auto since = std::chrono::steady_clock::now();
  std::vector<std::optional<SlideIdentity>> found(manifest.size());
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    check_start(since, manifest.size());
    if (manifest[i].mine) found[i] = look(manifest[i].path);
  }
  slides_.assign(manifest.size(), {});
  forget_image_names();
  change([&] {
    // One that ended properly left no slide running.
    const SlideCounts deaths = count_running(database_, deaths_name);
    const SlideCounts shortages = counts_of_undone(database_, shortages_name);
    const SlideCounts unwritten = counts_of_undone(database_, unwritten_name);
    start.list_damaged = has_damaged_list(database_);
    forget_manifest(manifest);
    store_shards(database_, shards);
    EntryStatements with(database_, bins_);
    const std::unordered_set<std::int64_t> with_files = slides_with_files(database_);
    for (std::size_t i = 0; i < manifest.size(); ++i) {
      check_start(since, manifest.size());
      const std::string state = enter(with, i, manifest[i], found[i], retried_cause, start);
      if (!manifest[i].mine) continue;
      const std::uint64_t size = found[i] ? found[i]->size : 0;
      slides_[i].path = manifest[i].path;
      slides_[i].had_begun = with_files.contains(slides_[i].id);
      ++start.mine;
      start.bytes += size;
      const bool incomplete = state == "done" && slides_[i].incomplete;
      const bool is_retried = retry_failed || slides_[i].is_retried;
      if (state == "done" && !(incomplete && is_retried)) {
        ++start.done;
        if (incomplete) ++start.incomplete;
      } else if (state == "failed" && !is_retried) {
        ++start.failed;
      } else {
        if (state == "failed" || incomplete) redo_row(slides_[i].id);
        if (const auto died = deaths.find(slides_[i].id); died != deaths.end()) start.deaths[i] = died->second;
        if (const auto lacked = shortages.find(slides_[i].id); lacked != shortages.end()) {
          start.shortages[i] = lacked->second;
        }
        if (unwritten.contains(slides_[i].id)) start.unwritten.insert(i);
        start.todo.push_back(i);
        start.todo_bytes.push_back(size);
        start.bytes_left += size;
      }
    }
    Statement others(database_,
                     "SELECT count(CASE WHEN position IS NULL THEN 1 END), count(CASE WHEN position IS NOT NULL AND "
                     "NOT mine THEN 1 END) FROM slides WHERE state IN ('done', 'failed')");
    Statement joined(database_, "SELECT EXISTS (SELECT 1 FROM meta WHERE name = 'joined')");
    start.joined = joined.step() && joined.integer(0) != 0;
    // Two entries for one row are no manifest's doing.
    Statement placed(database_, "SELECT count(*) FROM slides WHERE position IS NOT NULL");
    if (placed.step() && placed.integer(0) != static_cast<std::int64_t>(manifest.size())) {
      database_.fail_damaged("slides and their index don't agree");
    }
    seal_list(database_);
    if (others.step()) {
      start.left_out = static_cast<std::size_t>(others.integer(0));
      start.of_others = static_cast<std::size_t>(others.integer(1));
    }
    if (!start.damaged.empty()) mend_once();
  });
  return start;
}

std::size_t Ledger::failed_by(std::string_view cause) {
  const std::lock_guard lock(mutex_);
  Statement select(database_,
                   "SELECT count(*) FROM slides WHERE position IS NOT NULL AND mine AND state = 'failed' AND "
                   "instr(CAST(cause AS BLOB), ?1) > 0");
  return select.bind_blob(1, cause).step() ? static_cast<std::size_t>(select.integer(0)) : 0;
}

Ledger::LeftSlides Ledger::left_slides() {
  LeftSlides left;
  const std::lock_guard lock(mutex_);
  const std::unordered_set<std::int64_t> with_files = slides_with_files(database_);
  // What failed otherwise has kept what is there on purpose.
  Statement select(
      database_,
      "SELECT id, image_name, state = 'failed' FROM slides WHERE image_name IS NOT NULL AND CASE state WHEN "
      "'done' THEN 0 WHEN 'failed' THEN CAST(coalesce(cause, '') AS TEXT) IN (?1, ?2) ELSE position IS "
      "NULL OR NOT mine END");
  select.bind(1, std::string_view(cause_of_deaths)).bind(2, std::string_view(cause_of_shortages));
  Statement files(database_, "SELECT file, bytes, digest FROM artifacts WHERE slide = ?1");
  while (select.step()) {
    const std::int64_t id = select.integer(0);
    if (select.integer(2) == 0 && !with_files.contains(id)) continue;
    left.names.insert(select.text(1));
    for (files.bind(1, id); files.step();) {
      const auto bytes = static_cast<std::uint64_t>(files.integer(1));
      left.artifacts[files.text(0)] = {"", "", files.text(0), bytes, static_cast<std::uint64_t>(files.integer(2))};
    }
    files.reset();
  }
  return left;
}

/// The row lists the slide's files until it ends again.
void Ledger::redo_row(std::int64_t id) {
  Statement update(database_, "UPDATE slides SET state = 'pending' WHERE id = ?1");
  update.bind(1, id).run();
}

void Ledger::redo(std::size_t slide) {
  change([&] {
    mend_once();
    redo_row(slides_.at(slide).id);
  });
}

/// Where one thing is damaged, an index may be, too: what is written next would make that worse.
void Ledger::mend_once() {
  if (!std::exchange(has_mended_, true)) mend_indices(database_, most_checked_bytes);
}

/// Rows that have the place which `manifest` gives them keep it: another place makes SQLite write all of a row anew.
void Ledger::forget_manifest(const std::vector<ManifestEntry>& manifest) {
  std::vector<std::int64_t> others;
  Statement select(database_, "SELECT id, position, canonical FROM slides WHERE position IS NOT NULL");
  while (select.step()) {
    const std::int64_t position = select.integer(1);
    const bool stays = position >= 0 && position < std::ssize(manifest) &&
                       select.bytes(2) == manifest[static_cast<std::size_t>(position)].canonical;
    if (!stays) others.push_back(select.integer(0));
  }
  Statement forget(database_, "UPDATE slides SET position = NULL, mine = 0 WHERE id = ?1");
  for (const std::int64_t id : others) forget.bind(1, id).run();
  database_.execute("UPDATE slides SET state = 'pending' WHERE state = 'running'");
}

void Ledger::forget_image_names() {
  const std::lock_guard lock(names_mutex_);
  image_names_.clear();
}

std::string Ledger::image_name(std::size_t slide) {
  const std::lock_guard lock(names_mutex_);
  if (image_names_.empty()) change([this] { image_names_ = name_images(); });
  return image_names_.at(slide);
}

std::vector<std::string> Ledger::image_names() {
  const std::lock_guard lock(names_mutex_);
  if (image_names_.empty()) change([this] { image_names_ = name_images(); });
  return image_names_;
}

std::vector<std::string> Ledger::name_images() {
  struct Row {
    std::int64_t id = 0;
    bool ended = false;
    std::string before;
  };
  std::vector<ManifestEntry> manifest(slides_.size());
  std::vector<std::string> names(slides_.size());
  std::vector<Row> rows(slides_.size());
  std::vector<std::string> others;
  std::unordered_set<std::string> taken;
  // Names of slides that ended stand: their files have them.
  Statement select(database_,
                   "SELECT id, path, canonical, image_name, position, state IN ('done', 'failed') FROM slides WHERE "
                   "position IS NOT NULL OR image_name IS NOT NULL ORDER BY 6 DESC, position, id");
  while (select.step()) {
    const Row row = {select.integer(0), select.integer(5) != 0, select.text(3)};
    const ManifestEntry entry = {select.text(1), select.text(2), true};
    // A row that is damaged may have any name, and is done again.
    const bool can_be = is_image_name(row.before) && (row.ended || may_name_images(row.before, entry, portable_names_));
    const bool stands = can_be && (taken.insert(folded_name(row.before)).second || row.ended);
    const std::string name = stands ? row.before : std::string();
    if (select.is_null(4)) {
      others.push_back(name);
      continue;
    }
    const auto place = static_cast<std::size_t>(select.integer(4));
    if (place >= rows.size()) database_.fail_damaged("slides and their index don't agree");
    rows[place] = row;
    names[place] = name;
    manifest[place] = entry;
  }
  fill_image_names(manifest, others, names, portable_names_);
  Statement update(database_, "UPDATE slides SET image_name = ?1 WHERE id = ?2");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // The name is part of what a row that ended is sealed with.
    if (rows[i].ended || rows[i].before == names[i]) continue;
    update.bind_blob(1, std::string_view(names[i])).bind(2, rows[i].id).run();
  }
  return names;
}

}  // namespace slidestream
