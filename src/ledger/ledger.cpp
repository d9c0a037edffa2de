#include "ledger/ledger.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <random>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "ledger/artifact_files.hpp"
#include "ledger/attachments.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/owner.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// What a run leaves in its folder besides the ledger.
std::vector<std::string> run_files() {
  std::vector<std::string> files = {"slides.csv",   "corpus.json",   "histograms.npy",
                                    "failures.csv", "artifacts.csv", "maps"};
  for (std::string& file : statistic_files()) files.push_back(std::move(file));
  return files;
}

/// The first file of results that lies in the folder; empty: none does.
std::string first_result(const fs::path& folder) {
  std::error_code code;
  for (const std::string& name : run_files()) {
    if (fs::is_regular_file(folder / name, code)) return name;
  }
  return {};
}

/// Results without their ledger are an earlier run's that was lost: nothing may be written over them.
void check_that_nothing_is_there_without_ledger(const fs::path& file) {
  std::error_code code;
  const bool is_there = fs::exists(file, code);
  if (is_there && (!fs::is_regular_file(file, code) || fs::file_size(file, code) > 0)) return;
  const std::string found = first_result(file.parent_path());
  if (found.empty()) return;
  throw ConfigError(file.parent_path().string() + ": has " + found + ", but " +
                    (is_there ? "its run.sqlite is empty" : "no run.sqlite") +
                    "; name another folder, or use --fresh to move what is there aside");
}

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

/// The whole configuration, for what has no other. Paths of this start aren't needed again, and may be no UTF-8.
std::string stored_configuration(Config config) {
  config.input.slides.clear();
  config.output.dir = OutputConfig{}.dir;
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

/// Before anything is written: a living process on this machine is told from its number alone, also where it has the
/// ledger locked. Nor is one of an earlier version written to when it is to be gone on with. Whatever can't be read is
/// for the caller to find.
void refuse_if_in_use(const fs::path& file, bool to_go_on) {
  std::error_code code;
  if (!fs::is_regular_file(file, code) || fs::file_size(file, code) == 0) return;
  try {
    Database database(file, DatabaseAccess::read, std::chrono::seconds(5));
    const std::int64_t version = check_schema(database);
    const auto owner = read_owner(database);
    if (owner && is_alive(owner->process).value_or(false)) refuse(file, *owner);
    if (to_go_on) refuse_older(database, version);
  } catch (const OutputError&) {
    // The caller finds it, too.
  }
}

/// The same, before the ledger is opened or made.
fs::path usable_file(const Config& config) {
  fs::path file = ledger_file(config);
  check_that_nothing_is_there_without_ledger(file);
  refuse_if_in_use(file, true);
  return file;
}

/// Enters this process as the owner, where there is none or a dead one; returns its token.
std::string claim(Database& database, const Ledger::Options& options) {
  std::string token = new_token();
  while (true) {
    const auto judged = read_owner(database);
    if (judged && !is_dead(database, *judged, options.watch, options.on_watch)) refuse(database.file(), *judged);
    Transaction transaction(database);
    // While it was being judged another may have taken it.
    const auto owner = read_owner(database);
    if (owner && (!judged || !(owner->process == judged->process) || owner->beats != judged->beats)) continue;
    const ProcessIdentity self = this_process();
    Statement write(database, "INSERT OR REPLACE INTO owner VALUES(1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?7)");
    write.bind(1, std::string_view(token)).bind(2, std::string_view(self.host)).bind(3, std::string_view(self.boot));
    write.bind(4, std::string_view(self.pid_space)).bind(5, self.pid).bind(6, self.start).bind(7, unix_now()).run();
    transaction.commit();
    return token;
  }
}

/// In one file, so that one renaming moves it: a write-ahead log left behind would hold the last slides. Readers of the
/// log are waited for; SQLite itself doesn't.
void fold_log(Database& database) {
  constexpr int most_tries = 100;
  for (int tries = 1;; ++tries) {
    try {
      set_up_writer(database, JournalMode::rollback);
      return;
    } catch (const OutputError&) {
      if (tries == most_tries) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

OutputError moved(const fs::path& file) {
  return OutputError(file.string() + ": was moved, replaced or deleted while it was in use");
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
    : hash_policy_(config.input.content_hash),
      side_inputs_(config),
      bins_(static_cast<std::size_t>(config.analysis.bins)),
      portable_names_(config.output.portable_names),
      database_(usable_file(config), DatabaseAccess::create) {
  wal_ = set_up_writer(database_, config.output.journal) == JournalMode::wal;
  {
    Transaction transaction(database_);
    create_or_check_schema(database_);
    transaction.commit();
  }
  check_slides_table(database_);
  number_ = number_of(file()).value_or(FileNumber{});
  sync_folder(config.output.dir);
  token_ = claim(database_, options);
  try {
    enter_left_notes(database_);
    notes_.emplace(file(), token_);
    check_settings(config, options);
  } catch (...) {
    release();
    throw;
  }
  // From here on giving up costs a run: who reads for long, such as a merge over a network, is waited for.
  database_.set_patience(std::chrono::minutes(10));
}

Ledger::~Ledger() {
  try {
    release();
  } catch (const std::exception&) {
    // The next process finds that this one is dead.
  }
}

void Ledger::check_settings(const Config& config, const Options& options) {
  const auto now = options.settings.empty() ? ledger_settings(config) : options.settings;
  if (have_decided(database_)) {
    if (const auto difference = first_difference(now, stored_settings(database_))) {
      throw ConfigError(config.output.dir + ": " + difference->text() +
                        "; name another folder, or use --fresh to move that run aside");
    }
  }
  change([&] {
    database_.execute("DELETE FROM settings");
    Statement setting(database_, "INSERT INTO settings VALUES(?1, ?2)");
    for (const auto& [name, value] : now)
      setting.bind(1, std::string_view(name)).bind(2, std::string_view(value)).run();
    Statement meta(database_, "INSERT OR REPLACE INTO meta VALUES('configuration', ?1)");
    const std::string text = stored_configuration(config);
    meta.bind_blob(1, std::string_view(text)).run();
  });
}

void Ledger::change(const std::function<void()>& work, Durability durability) {
  const std::lock_guard lock(mutex_);
  const Synchronous synchronous(database_, durability == Durability::hurried && wal_);
  check_place();
  Transaction transaction(database_);
  Statement beat(database_, "UPDATE owner SET beats = beats + 1, beat_at = ?1 WHERE token = ?2");
  beat.bind(1, unix_now()).bind(2, std::string_view(token_)).run();
  if (database_.changed() != 1) {
    lost_ = true;
    const auto owner = read_owner(database_);
    throw OutputError(database_.file().string() + ": was taken over" +
                      (owner ? " by a run on " + owner->process.name() : std::string()));
  }
  const std::size_t started = notes_->enter(database_);
  work();
  transaction.commit();
  notes_->entered(started);
}

void Ledger::check_place() {
  const auto now = number_of(file());
  // Storage that doesn't answer for a moment has moved nothing.
  if (!now || *now == number_) return;
  lost_ = true;
  throw moved(file());
}

std::optional<Ledger::FileNumber> Ledger::number_of(const fs::path& file) noexcept {
  struct ::stat status {};
  if (::stat(file.c_str(), &status) == 0) return FileNumber{status.st_dev, status.st_ino};
  if (errno == ENOENT || errno == ENOTDIR) return FileNumber{};
  return std::nullopt;
}

void Ledger::beat() {
  change([] {}, Durability::hurried);
}

void Ledger::enter_starts() {
  if (notes_->wait_long()) beat();
}

void Ledger::release() {
  const std::lock_guard lock(mutex_);
  Transaction transaction(database_);
  Statement remove(database_, "DELETE FROM owner WHERE token = ?1");
  remove.bind(1, std::string_view(token_)).run();
  if (database_.changed() == 1) {
    if (notes_) notes_->enter(database_);
    database_.execute("UPDATE slides SET state = 'pending' WHERE state = 'running'");
  }
  transaction.commit();
}

bool Ledger::has_results(const fs::path& folder) {
  std::error_code code;
  return fs::exists(folder / ledger_name, code) || !first_result(folder).empty();
}

std::string Ledger::move_aside(const Config& config, const Options& options) {
  const fs::path folder = config.output.dir;
  std::error_code code;
  if (!has_results(folder)) return {};
  refuse_if_in_use(folder / ledger_name, false);
  std::unique_ptr<Database> database;
  if (is_readable(folder / ledger_name)) {
    database = std::make_unique<Database>(folder / ledger_name, DatabaseAccess::read_write);
    claim(*database, options);
    enter_left_notes(*database);
    fold_log(*database);
  }
  fs::path aside;
  for (int number = 1;; ++number) {
    aside = folder / ("earlier-" + std::to_string(number));
    if (fs::create_directory(aside, code)) break;
    if (code) throw OutputError(aside.string() + ": " + code.message());
  }
  const auto move = [&](const std::string& name) {
    if (!fs::exists(fs::symlink_status(folder / name, code))) return;
    fs::rename(folder / name, aside / name, code);
    if (code) throw OutputError((folder / name).string() + ": " + code.message());
  };
  for (const std::string& name : run_files()) move(name);
  if (database) move_artifacts(*database, folder, aside);
  // There only where the ledger couldn't be read.
  for (const char* suffix : {"-wal", "-shm", "-journal", "-started"}) move(std::string(ledger_name) + suffix);
  if (database) database->execute("DELETE FROM owner");
  move(ledger_name);
  database.reset();
  sync_folder(aside);
  sync_folder(folder);
  return aside.string();
}

std::optional<SlideIdentity> Ledger::look(const std::string& path) const {
  std::optional<SlideIdentity> found = look_at(path);
  if (found) found->side = side_inputs_.of(path);
  return found;
}

void Ledger::started(std::size_t slide) {
  Slide& entry = slides_.at(slide);
  std::optional<SlideIdentity> identity = look(entry.path);
  if (identity && hash_policy_ != ContentHashPolicy::none) identity->hash = content_of(entry.path);
  entry.known = identity.has_value();
  if (identity) entry.identity = *identity;
  check_place();
  notes_->add(entry.id);
}

void Ledger::check_unchanged(std::size_t slide, SlideResult& result) {
  const Slide& entry = slides_.at(slide);
  if (!result.done || !entry.known) return;
  const auto now = look(entry.path);
  if (now && now->same_state(entry.identity)) return;
  const std::size_t bins = result.sums.histogram.size();
  const bool outlines = now && now->side != entry.identity.side;
  result.fail(
      {"source", {}, outlines ? "its outlines changed while it was read" : "the file changed while it was read"});
  result.sums = {};
  result.sums.histogram.assign(bins, 0);
  result.map = {};
  result.values.clear();
  // They were made of what the file no longer is.
  remove_artifacts(file().parent_path(), result.artifacts);
  result.artifacts.clear();
}

void Ledger::keep_row(const Ended& ended) {
  const Slide& entry = slides_.at(ended.slide);
  const SlideResult& result = *ended.result;
  const RowDigests digests = {store_map(database_, entry.id, parts_of(result.map)),
                              store_attachments(database_, entry.id, result)};
  Statement update(database_,
                   std::string("UPDATE slides SET ") + row_assignments +
                       ", size = ?28, modified = ?29, hash = ?30, side = ?31, ended_at = ?32 WHERE id = ?33");
  static_assert(row_assignment_count == 27);
  bind_row(update, result, digests, histogram_);
  bind_identity(update, 28, entry.known ? std::optional(entry.identity) : std::nullopt);
  update.bind(32, unix_now()).bind(33, entry.id).run();
  seal_row(database_, entry.id);
}

void Ledger::keep(std::span<const Ended> slides) {
  if (slides.empty()) return;
  change([&] {
    // From here on the folder has something of its own.
    database_.execute("DELETE FROM meta WHERE name = 'joined'");
    for (const Ended& ended : slides) keep_row(ended);
  });
  // Files of what the slide or its outlines were would be taken for those of what they are.
  for (const Ended& ended : slides) {
    remove_former_artifacts(file().parent_path(), std::exchange(slides_.at(ended.slide).former, {}),
                            ended.result->artifacts);
  }
}

void Ledger::ended(std::size_t slide, SlideResult& result) {
  check_unchanged(slide, result);
  const Ended one = {slide, &result};
  keep({&one, 1});
}

void Ledger::map_renamed(std::size_t slide, const std::string& name) {
  change([&] {
    Statement update(database_, "UPDATE slides SET map_name = ?1 WHERE id = ?2");
    update.bind_blob(1, std::string_view(name)).bind(2, slides_.at(slide).id).run();
  });
}

}  // namespace slidestream
