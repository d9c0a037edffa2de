#include <slidestream/error.hpp>
#include <tuple>

#include "config/suggest.hpp"
#include "ledger/image_names.hpp"
#include "ledger/ledger.hpp"
#include "ledger/shard.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/status.hpp"

namespace slidestream {

namespace {

/// A slide that was imported before, as the ledger has it.
struct Before {
  SlideResult result;
  std::optional<std::uint64_t> map_digest;
  std::int64_t ended_at = 0;
  std::int64_t attempts = 0;
  bool is_joined = false;
};

Before read_before(Database& database, std::int64_t id, std::size_t bins) {
  Statement select(database, "SELECT " + row_columns + ", ended_at, attempts FROM slides WHERE id = ?1");
  select.bind(1, id);
  if (!select.step()) throw OutputError(database.file().string() + ": damaged: a slide has gone");
  constexpr int more = row_column_count;
  Before before;
  before.map_digest = unsigned_or_null(select, map_digest_column);
  before.result = RowReader(database, bins).read(select);
  before.ended_at = select.integer(more);
  before.attempts = select.integer(more + 1);
  return before;
}

/// What a second finding of the same slide comes to; `added` where it is to replace the first.
Ledger::Import judge(const Before& before, const Ledger::Imported& other) {
  const SlideResult& result = other.result;
  if (before.result.done != result.done) return result.done ? Ledger::Import::added : Ledger::Import::known;
  if (result.done && (!same_result(before.result, result) || before.map_digest != other.map_digest)) {
    return Ledger::Import::different;
  }
  // The latest: later merges compare it with what folders did since. Files of joined results may have moved.
  const auto order = [](const SlideResult& slide, std::int64_t ended_at, bool is_joined, std::int64_t attempts) {
    return std::tuple(-ended_at, is_joined, attempts, slide.seconds, slide.backend, slide.gpu_fallback_tiles,
                      slide.error, slide.file_bytes,
                      slide.artifacts.empty() ? std::string() : slide.artifacts.front().file);
  };
  const bool goes_first = order(result, other.ended_at, other.is_joined, other.attempts) <
                          order(before.result, before.ended_at, before.is_joined, before.attempts);
  return goes_first ? Ledger::Import::added : Ledger::Import::known;
}

}  // namespace

Ledger::ListedMaps Ledger::listed_maps() {
  const std::lock_guard lock(mutex_);
  return read_listed_maps();
}

Ledger::ListedMaps Ledger::read_listed_maps() {
  ListedMaps listed;
  Statement select(database_,
                   "SELECT canonical, map_name, map_columns, map_rows, map_digest FROM slides WHERE map_columns > 0");
  while (select.step()) {
    listed.slides[select.text(0)] = {select.text(1), unsigned_or_null(select, 4)};
    WindowMap& map = listed.files[select.text(1)];
    map.columns = select.integer(2);
    map.rows = select.integer(3);
  }
  return listed;
}

void Ledger::join(const std::vector<ManifestEntry>& manifest, const std::function<void()>& work,
                  const std::function<void(const std::vector<std::string>& names, const ListedMaps& maps)>& check,
                  const std::unordered_set<std::string>& former) {
  change([&] {
    Statement own(database_,
                  "SELECT count(*) FROM slides WHERE state = 'done' AND NOT EXISTS (SELECT 1 FROM meta WHERE name = "
                  "'joined')");
    if (own.step() && own.integer(0) > 0) {
      throw ConfigError(database_.file().parent_path().string() + ": holds " + std::to_string(own.integer(0)) +
                        (own.integer(0) == 1 ? " slide" : " slides") +
                        " of a run of its own; name it among the folders to be joined, and another for the "
                        "joined results");
    }
    own.reset();
    forget_manifest(manifest);
    slides_.assign(manifest.size(), {});
    joined_.assign(manifest.size(), 0);
    Statement enter(
        database_,
        "INSERT INTO slides(canonical, path, position, size, mine, ended_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON "
        "CONFLICT(canonical) DO UPDATE SET path = excluded.path, position = excluded.position, size = excluded.size, "
        "mine = excluded.mine, ended_at = excluded.ended_at");
    Statement select(database_, "SELECT id FROM slides WHERE canonical = ?1");
    for (std::size_t i = 0; i < manifest.size(); ++i) {
      enter.bind_blob(1, std::string_view(manifest[i].canonical)).bind_blob(2, std::string_view(manifest[i].path));
      enter.bind(3, static_cast<std::int64_t>(i)).bind(4, static_cast<std::int64_t>(manifest[i].bytes));
      enter.bind(5, manifest[i].kept);
      if (manifest[i].ended_at) {
        enter.bind(6, *manifest[i].ended_at);
      } else {
        enter.bind_null(6);
      }
      enter.run();
      select.bind_blob(1, std::string_view(manifest[i].canonical));
      if (select.step()) slides_[i].id = select.integer(0);
      select.reset();
      slides_[i].path = manifest[i].path;
    }
    work();
    check_that_joining_loses_nothing(manifest, former);
    check(name_images(), read_listed_maps());
    database_.execute("INSERT OR REPLACE INTO meta VALUES('joined', 1)");
    store_shards(database_, 0);
    seal_list(database_);
  });
}

void Ledger::check_that_joining_loses_nothing(const std::vector<ManifestEntry>& manifest,
                                              const std::unordered_set<std::string>& former) {
  struct Lost {
    std::size_t count = 0;
    std::string first;
  };
  Lost nowhere;
  Lost no_inputs;
  const auto add = [](Lost& to, const Statement& row) {
    if (to.count++ == 0) to.first = row.text(0);
  };
  Statement lost(database_, "SELECT path FROM slides WHERE id = ?1 AND state IN ('done', 'failed')");
  // Its map leaves with it.
  Statement leave(database_,
                  "UPDATE slides SET state = 'pending', map_columns = NULL, map_rows = NULL, map_name = NULL WHERE id "
                  "= ?1");
  for (std::size_t i = 0; i < slides_.size(); ++i) {
    if (joined_[i] != 0) continue;
    lost.bind(1, slides_[i].id);
    // A ledger that is joined has it to do.
    if (!manifest[i].mine && lost.step()) add(nowhere, lost);
    lost.reset();
    leave.bind(1, slides_[i].id).run();
  }
  Statement others(database_,
                   "SELECT path, canonical FROM slides WHERE position IS NULL AND state IN ('done', 'failed') ORDER "
                   "BY canonical");
  while (others.step()) add(former.contains(others.text(1)) ? no_inputs : nowhere, others);
  const auto holds = [this](const Lost& those) {
    return database_.file().parent_path().string() + ": holds " + std::to_string(those.count) +
           (those.count == 1 ? " slide" : " slides") + " of an earlier joining that ";
  };
  if (nowhere.count > 0) {
    throw ConfigError(holds(nowhere) + "none of the folders has, first " + one_line(nowhere.first) +
                      "; name its folder, too, or use --fresh to move the earlier results aside");
  }
  if (no_inputs.count == 0) return;
  throw ConfigError(holds(no_inputs) + (no_inputs.count == 1 ? "isn't" : "aren't") +
                    " among the inputs of the folders any more, first " + one_line(no_inputs.first) +
                    "; --fresh leaves " + (no_inputs.count == 1 ? "it" : "them") +
                    " out, and moves the earlier results aside");
}

Ledger::Import Ledger::import(std::size_t slide, const Imported& other) {
  const std::int64_t id = slides_.at(slide).id;
  bool known = false;
  if (joined_[slide] != 0) {
    Before before = read_before(database_, id, bins_);
    before.is_joined = joined_[slide] == 2;
    const Import outcome = judge(before, other);
    if (outcome != Import::added) return outcome;
    known = before.result.done == other.result.done;
  }
  joined_[slide] = other.is_joined ? 2 : 1;
  const RowDigests digests = {store_map(database_, id, other.map), store_attachments(database_, id, other.result)};
  if (digests.map != other.map_digest) return Import::damaged;
  Statement update(database_,
                   std::string("UPDATE slides SET ") + row_assignments +
                       ", size = ?28, modified = ?29, hash = ?30, side = ?31, ended_at = ?32, attempts = ?33, "
                       "image_name = ?34 WHERE id = ?35");
  static_assert(row_assignment_count == 27);
  bind_row(update, other.result, digests, histogram_);
  bind_identity(update, 28, other.identity);
  update.bind(32, other.ended_at).bind(33, other.attempts).bind(35, id);
  if (is_image_name(other.image_name)) {
    update.bind_blob(34, std::string_view(other.image_name));
  } else {
    update.bind_null(34);
  }
  update.run();
  seal_row(database_, id);
  return known ? Import::known : Import::added;
}

bool Ledger::has_imported(std::size_t slide, const SlideResult& result, std::optional<std::uint64_t> map_digest) {
  const Before before = read_before(database_, slides_.at(slide).id, bins_);
  return same_result(before.result, result) && before.map_digest == map_digest;
}

void Ledger::set_kept(std::size_t slide, std::int64_t kept) {
  Statement update(database_, "UPDATE slides SET mine = ?1 WHERE id = ?2");
  update.bind(1, kept).bind(2, slides_.at(slide).id).run();
}

}  // namespace slidestream
