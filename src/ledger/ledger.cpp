#include "ledger/ledger.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <system_error>
#include <tuple>

#include "ledger/content_hash.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/owner.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// A map's values in pieces that SQLite takes: its blobs end at 10^9 bytes.
constexpr std::size_t map_part_bytes = std::size_t{64} << 20;

/// What a run leaves in its folder besides the ledger.
constexpr std::array<const char*, 5> run_files = {"slides.csv", "corpus.json", "histograms.npy", "failures.csv",
                                                  "maps"};

fs::path ledger_file(const Config& config) { return fs::path(config.output.dir) / ledger_name; }

std::string new_token() {
  std::random_device random;
  return std::to_string(random()) + "-" + std::to_string(random()) + "-" + std::to_string(::getpid());
}

/// A new name lies in the folder, and is durable when the folder is.
void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int synced = descriptor < 0 ? -1 : ::fsync(descriptor);
  const int code = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (synced != 0 && code != EINVAL) throw OutputError(folder.string() + ": " + std::generic_category().message(code));
}

void bind_identity(Statement& statement, int first, const std::optional<SlideIdentity>& identity) {
  if (!identity) {
    statement.bind_null(first).bind_null(first + 1).bind_null(first + 2);
    return;
  }
  statement.bind(first, static_cast<std::int64_t>(identity->size)).bind(first + 1, identity->modified);
  if (identity->hash) {
    statement.bind(first + 2, static_cast<std::int64_t>(*identity->hash));
  } else {
    statement.bind_null(first + 2);
  }
}

/// The whole configuration, for what has no other. Paths of this start aren't needed again, and may be no UTF-8.
std::string stored_configuration(Config config) {
  config.input.slides.clear();
  config.output.dir = OutputConfig{}.dir;
  config.analysis.fftw_wisdom.clear();
  return to_toml(config);
}

/// While it lives, commits to a write-ahead log don't wait for the disk when `lowered`.
class Synchronous {
 public:
  Synchronous(Database& database, bool lowered) : database_(database), lowered_(lowered) {
    if (lowered_) database_.execute("PRAGMA synchronous = NORMAL");
  }
  ~Synchronous() {
    // Fails only where memory is at its end; what is lowered stays consistent all the same.
    if (lowered_) sqlite3_exec(database_.handle(), "PRAGMA synchronous = EXTRA", nullptr, nullptr, nullptr);
  }
  Synchronous(const Synchronous&) = delete;
  Synchronous& operator=(const Synchronous&) = delete;

 private:
  Database& database_;
  bool lowered_;
};

[[noreturn]] void refuse(const fs::path& file, const Owner& owner) {
  throw ConfigError(file.parent_path().string() + ": belongs to a run on " + owner.process.name() +
                    "; wait for its end, or name another folder");
}

/// Whether it is a ledger of a version that this program knows: what isn't belongs to nobody.
bool is_readable(const fs::path& file) {
  try {
    Database database(file, DatabaseAccess::read_write);
    check_schema(database);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Ledger::Ledger(const Config& config, const Options& options)
    : hash_policy_(config.input.content_hash), database_(ledger_file(config), DatabaseAccess::create) {
  wal_ = set_up_writer(database_, config.output.journal) == JournalMode::wal;
  {
    Transaction transaction(database_);
    create_or_check_schema(database_);
    transaction.commit();
  }
  sync_folder(config.output.dir);
  take_over(options);
  try {
    check_settings(config);
  } catch (...) {
    release();
    throw;
  }
}

Ledger::~Ledger() {
  try {
    release();
  } catch (const std::exception&) {
    // The next process finds that this one is dead.
  }
}

void Ledger::take_over(const Options& options) {
  token_ = new_token();
  while (true) {
    const auto judged = read_owner(database_);
    if (judged && !is_dead(database_, *judged, options.watch, options.on_watch)) refuse(database_.file(), *judged);
    Transaction transaction(database_);
    // While it was being judged another may have taken it.
    const auto owner = read_owner(database_);
    if (owner && (!judged || !(owner->process == judged->process) || owner->beats != judged->beats)) continue;
    const ProcessIdentity self = this_process();
    Statement write(database_, "INSERT OR REPLACE INTO owner VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?7)");
    write.bind(1, std::string_view(token_)).bind(2, std::string_view(self.host)).bind(3, std::string_view(self.boot));
    write.bind(4, std::string_view(self.pid_space)).bind(5, self.pid).bind(6, self.start).bind(7, unix_now()).run();
    transaction.commit();
    return;
  }
}

void Ledger::check_settings(const Config& config) {
  const auto now = deciding_settings(config);
  std::map<std::string, std::string> before;
  Statement select(database_, "SELECT name, value FROM settings");
  while (select.step()) before.emplace(select.text(0), select.text(1));
  if (!before.empty()) {
    if (const auto difference = first_difference(now, before)) {
      throw ConfigError(config.output.dir + ": " + *difference +
                        "; name another folder, or use --fresh to move that run aside");
    }
  }
  change([&] {
    Statement setting(database_, "INSERT OR REPLACE INTO settings VALUES(?1, ?2)");
    for (const auto& [name, value] : now)
      setting.bind(1, std::string_view(name)).bind(2, std::string_view(value)).run();
    Statement meta(database_, "INSERT OR REPLACE INTO meta VALUES('configuration', ?1)");
    const std::string text = stored_configuration(config);
    meta.bind_blob(1, std::string_view(text)).run();
  });
}

template <class Work>
void Ledger::change(Work&& work, Durability durability) {
  const std::lock_guard lock(mutex_);
  const Synchronous synchronous(database_, durability == Durability::hurried && wal_);
  Transaction transaction(database_);
  Statement beat(database_, "UPDATE owner SET beats = beats + 1, beat_at = ?1 WHERE token = ?2");
  beat.bind(1, unix_now()).bind(2, std::string_view(token_)).run();
  if (database_.changed() != 1) {
    const auto owner = read_owner(database_);
    throw OutputError(database_.file().string() + ": was taken over" +
                      (owner ? " by a run on " + owner->process.name() : std::string()));
  }
  work();
  transaction.commit();
}

void Ledger::beat() {
  change([] {}, Durability::hurried);
}

void Ledger::release() {
  const std::lock_guard lock(mutex_);
  Transaction transaction(database_);
  Statement remove(database_, "DELETE FROM owner WHERE token = ?1");
  remove.bind(1, std::string_view(token_)).run();
  if (database_.changed() == 1) database_.execute("UPDATE slides SET state = 'pending' WHERE state = 'running'");
  transaction.commit();
}

std::string Ledger::move_aside(const Config& config, const Options& options) {
  const fs::path folder = config.output.dir;
  std::error_code code;
  if (!fs::exists(folder / ledger_name, code)) return {};
  if (is_readable(folder / ledger_name)) {
    Database database(folder / ledger_name, DatabaseAccess::read_write);
    if (const auto owner = read_owner(database); owner && !is_dead(database, *owner, options.watch, options.on_watch)) {
      refuse(folder / ledger_name, *owner);
    }
    // In one file, so that one renaming moves it: a write-ahead log left behind would hold the last slides.
    set_up_writer(database, JournalMode::rollback);
  }
  fs::path aside;
  for (int number = 1;; ++number) {
    aside = folder / ("earlier-" + std::to_string(number));
    if (fs::create_directory(aside, code)) break;
    if (code) throw OutputError(aside.string() + ": " + code.message());
  }
  const auto move = [&](const char* name) {
    if (!fs::exists(fs::symlink_status(folder / name, code))) return;
    fs::rename(folder / name, aside / name, code);
    if (code) throw OutputError((folder / name).string() + ": " + code.message());
  };
  for (const char* name : run_files) move(name);
  // There only where the ledger couldn't be read.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) move((std::string(ledger_name) + suffix).c_str());
  move(ledger_name);
  sync_folder(aside);
  sync_folder(folder);
  return aside.string();
}

LedgerStart Ledger::begin(const std::vector<ManifestEntry>& manifest, bool retry_failed) {
  LedgerStart start;
  std::vector<std::optional<SlideIdentity>> found(manifest.size());
  for (std::size_t i = 0; i < manifest.size(); ++i) {
    if (manifest[i].mine) found[i] = look_at(manifest[i].path);
  }
  slides_.assign(manifest.size(), {});
  change([&] {
    forget_manifest();
    Statement select(database_, "SELECT id, state, size, modified, hash FROM slides WHERE canonical = ?1");
    Statement insert(database_, "INSERT INTO slides(canonical, path, position, mine, size) VALUES(?1, ?2, ?3, ?4, ?5)");
    Statement place(database_, "UPDATE slides SET path = ?1, position = ?2, mine = ?3, state = ?4 WHERE id = ?5");
    Statement identify(database_, "UPDATE slides SET size = ?1, modified = ?2, hash = ?3 WHERE id = ?4");
    for (std::size_t i = 0; i < manifest.size(); ++i) {
      const ManifestEntry& entry = manifest[i];
      std::string state = "pending";
      select.bind_blob(1, std::string_view(entry.canonical));
      if (select.step()) {
        slides_[i].id = select.integer(0);
        state = select.text(1);
        SlideIdentity before{static_cast<std::uint64_t>(select.integer(2)), select.integer(3), std::nullopt};
        if (!select.is_null(4)) before.hash = static_cast<std::uint64_t>(select.integer(4));
        select.reset();
        if (entry.mine && (state == "done" || state == "failed") && found[i]) {
          SlideIdentity& now = *found[i];
          if (has_changed(before, now, hash_policy_, entry.path)) {
            state = "pending";
            start.changed.push_back(entry.path);
          } else if (state == "done") {
            // What was done without a hash gets it at the first start that asks for it.
            const bool first_hash = hash_policy_ == ContentHashPolicy::always && !before.hash;
            if (first_hash) now.hash = file_hash(entry.path);
            if (first_hash || !before.same_file_state(now)) {
              bind_identity(identify, 1, now);
              identify.bind(4, slides_[i].id).run();
            }
          }
        }
        if (entry.mine && state == "done" && !found[i]) start.vanished.push_back(entry.path);
        if (entry.mine && state == "failed" && retry_failed) state = "pending";
        place.bind_blob(1, std::string_view(entry.path)).bind(2, static_cast<std::int64_t>(i));
        place.bind(3, std::int64_t{entry.mine}).bind(4, std::string_view(state)).bind(5, slides_[i].id).run();
      } else {
        insert.bind_blob(1, std::string_view(entry.canonical)).bind_blob(2, std::string_view(entry.path));
        insert.bind(3, static_cast<std::int64_t>(i)).bind(4, std::int64_t{entry.mine});
        if (found[i]) {
          insert.bind(5, static_cast<std::int64_t>(found[i]->size));
        } else {
          insert.bind_null(5);
        }
        insert.run();
        slides_[i].id = database_.last_row();
      }
      if (!entry.mine) continue;
      const std::uint64_t size = found[i] ? found[i]->size : 0;
      slides_[i].path = entry.path;
      ++start.mine;
      start.bytes += size;
      if (state == "done") {
        ++start.done;
      } else if (state == "failed") {
        ++start.failed;
      } else {
        start.todo.push_back(i);
        start.todo_bytes.push_back(size);
        start.bytes_left += size;
      }
    }
    Statement others(database_, "SELECT count(*) FROM slides WHERE position IS NULL");
    if (others.step()) start.left_out = static_cast<std::size_t>(others.integer(0));
  });
  return start;
}

void Ledger::forget_manifest() {
  database_.execute(
      "UPDATE slides SET position = NULL, mine = 0 WHERE position IS NOT NULL;"
      "UPDATE slides SET state = 'pending' WHERE state = 'running'");
}

void Ledger::adopt(const std::vector<ManifestEntry>& manifest) {
  slides_.assign(manifest.size(), {});
  change([&] {
    forget_manifest();
    Statement enter(
        database_,
        "INSERT INTO slides(canonical, path, position, mine) VALUES(?1, ?2, ?3, 1) ON CONFLICT(canonical) DO "
        "UPDATE SET path = excluded.path, position = excluded.position, mine = 1");
    Statement select(database_, "SELECT id FROM slides WHERE canonical = ?1");
    for (std::size_t i = 0; i < manifest.size(); ++i) {
      enter.bind_blob(1, std::string_view(manifest[i].canonical)).bind_blob(2, std::string_view(manifest[i].path));
      enter.bind(3, static_cast<std::int64_t>(i)).run();
      select.bind_blob(1, std::string_view(manifest[i].canonical));
      if (select.step()) slides_[i].id = select.integer(0);
      select.reset();
      slides_[i].path = manifest[i].path;
    }
  });
}

Ledger::Import Ledger::import(std::size_t slide, const Imported& other) {
  const Slide& entry = slides_.at(slide);
  const SlideResult& result = other.result;
  const std::size_t bins = result.sums.histogram.size();
  Import outcome = Import::added;
  const auto keep = [&] {
    Statement select(
        database_,
        std::string("SELECT ") + row_columns +
            ", ended_at, attempts, size, modified FROM slides WHERE id = ?1 AND state IN ('done', 'failed')");
    select.bind(1, entry.id);
    if (select.step()) {
      const SlideResult before = read_row(select, bins, database_.file().string());
      if (before.done && !result.done) {
        // Of the same file a result goes before a failure. A later failure of another file under that name says that
        // the result is no longer the slide's.
        const SlideIdentity done_file{static_cast<std::uint64_t>(select.integer(row_column_count + 2)),
                                      select.integer(row_column_count + 3), std::nullopt};
        const bool other_file = other.identity && !other.identity->same_file_state(done_file);
        const bool later = other.ended_at >= select.integer(row_column_count);
        return outcome = other_file && later ? Import::different : Import::known, false;
      }
      if (before.done == result.done) {
        outcome = Import::known;
        if (before.done && (!same_result(before, result) || !has_map(entry.id, other))) {
          return outcome = Import::different, false;
        }
        const auto order = [](const SlideResult& a, std::int64_t ended_at, std::int64_t attempts) {
          return std::tuple(ended_at, attempts, a.seconds, a.backend, a.error, a.file_bytes);
        };
        if (!(order(result, other.ended_at, other.attempts) <
              order(before, select.integer(row_column_count), select.integer(row_column_count + 1)))) {
          return false;
        }
      }
    }
    return true;
  };
  change(
      [&] {
        if (!keep()) return;
        Statement update(database_,
                         std::string("UPDATE slides SET ") + row_assignments +
                             ", size = ?23, modified = ?24, hash = ?25, ended_at = ?26, attempts = ?27 WHERE "
                             "id = ?28");
        bind_row(update, result, histogram_);
        bind_identity(update, 23, other.identity);
        update.bind(26, other.ended_at).bind(27, other.attempts).bind(28, entry.id).run();
        Statement remove(database_, "DELETE FROM maps WHERE slide = ?1");
        remove.bind(1, entry.id).run();
        Statement insert(database_, "INSERT INTO maps VALUES(?1, ?2, ?3)");
        std::int64_t part = 0;
        other.for_each_map_part([&](std::span<const std::byte> bytes) {
          insert.bind(1, entry.id).bind(2, part++).bind_blob(3, bytes).run();
        });
      },
      Durability::hurried);
  return outcome;
}

bool Ledger::has_map(std::int64_t id, const Imported& other) {
  Statement select(database_, "SELECT bytes FROM maps WHERE slide = ?1 ORDER BY part");
  select.bind(1, id);
  bool same = true;
  other.for_each_map_part([&](std::span<const std::byte> bytes) {
    same = same && select.step() &&
           select.bytes(0) == std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return same && !select.step();
}

void Ledger::sync() {
  change([] {});
}

void Ledger::started(std::size_t slide) {
  Slide& entry = slides_.at(slide);
  std::optional<SlideIdentity> identity = look_at(entry.path);
  if (identity && hash_policy_ != ContentHashPolicy::none) identity->hash = file_hash(entry.path);
  entry.known = identity.has_value();
  if (identity) entry.identity = *identity;
  change(
      [&] {
        Statement mark(database_, "UPDATE slides SET state = 'running', attempts = attempts + 1 WHERE id = ?1");
        mark.bind(1, entry.id).run();
      },
      Durability::hurried);
}

void Ledger::ended(std::size_t slide, SlideResult& result) {
  const Slide& entry = slides_.at(slide);
  if (result.done && entry.known) {
    if (const auto now = look_at(entry.path); !now || !now->same_file_state(entry.identity)) {
      const std::size_t bins = result.sums.histogram.size();
      result.done = false;
      result.error = "source: the file changed while it was read";
      result.sums = {};
      result.sums.histogram.assign(bins, 0);
      result.map = {};
    }
  }
  change([&] {
    Statement update(database_, std::string("UPDATE slides SET ") + row_assignments +
                                    ", size = ?23, modified = ?24, hash = ?25, ended_at = ?26 WHERE id = ?27");
    bind_row(update, result, histogram_);
    static_assert(row_assignment_count == 22);
    bind_identity(update, 23, entry.known ? std::optional(entry.identity) : std::nullopt);
    update.bind(26, unix_now()).bind(27, entry.id).run();
    Statement remove(database_, "DELETE FROM maps WHERE slide = ?1");
    remove.bind(1, entry.id).run();
    Statement insert(database_, "INSERT INTO maps VALUES(?1, ?2, ?3)");
    auto values = std::as_bytes(std::span(result.map.values));
    for (std::int64_t part = 0; !values.empty(); ++part) {
      const auto bytes = values.first(std::min(values.size(), map_part_bytes));
      insert.bind(1, entry.id).bind(2, part).bind_blob(3, bytes).run();
      values = values.subspan(bytes.size());
    }
  });
}

void Ledger::map_renamed(std::size_t slide, const std::string& name) {
  change([&] {
    Statement update(database_, "UPDATE slides SET map_name = ?1 WHERE id = ?2");
    update.bind_blob(1, std::string_view(name)).bind(2, slides_.at(slide).id).run();
  });
}

}  // namespace slidestream
