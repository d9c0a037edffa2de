#include "ledger/ledger.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <utility>

#include "ledger/artifact_files.hpp"
#include "ledger/aside.hpp"
#include "ledger/attachments.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/map_files.hpp"
#include "ledger/owner.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_counts.hpp"
#include "ledger/slide_row.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

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

/// Before the ledger is opened or made.
fs::path usable_file(const Config& config, const FolderLock& held, const OwnerWatch& watch) {
  fs::path file = fs::path(config.output.dir) / ledger_name;
  Ledger::check_folder(config, held);
  refuse_if_in_use(file, true, watch);
  return file;
}

OutputError moved(const fs::path& file) {
  return OutputError(file.string() + ": was moved, replaced or deleted while it was in use");
}

}  // namespace

Ledger::Ledger(const Config& config, const Options& options) : Ledger(config, options, FolderLock(config.output.dir)) {}

Ledger::Ledger(const Config& config, const Options& options, const FolderLock& held)
    : watch_(options.watch),
      told_after_(options.told_after),
      hash_policy_(config.input.content_hash),
      side_inputs_(config),
      bins_(static_cast<std::size_t>(config.analysis.bins)),
      map_bytes_left_(options.most_map_bytes),
      portable_names_(config.output.portable_names),
      is_new_(number_of(fs::path(config.output.dir) / ledger_name) == FileNumber{}),
      database_(usable_file(config, held, options.watch), DatabaseAccess::create) {
  wal_ = set_up_writer(database_, config.output.journal) == JournalMode::wal;
  {
    Transaction transaction(database_);
    create_or_check_schema(database_);
    transaction.commit();
  }
  std::error_code code;
  const std::uintmax_t bytes = fs::file_size(file(), code);
  if (!code && bytes >= options.told_bytes) {
    has_told_ = true;
    if (watch_.on_watch) {
      watch_.on_watch(config.output.dir + ": reading the ledger, of " + std::to_string(bytes >> 20) + " MiB");
    }
  }
  check_table(database_, "slides");
  number_ = number_of(file()).value_or(FileNumber{});
  sync_folder(config.output.dir);
  const Claim claimed = claim(database_, options.watch);
  token_ = claimed.token;
  try {
    if (claimed.has_lost_notes) replace_lost_notes(database_);
    if (has_notes(database_)) {
      enter_left_notes(database_);
    } else {
      // Who had it last ended, also where that couldn't be written: nobody died at its slides.
      Transaction transaction(database_);
      database_.execute("UPDATE slides SET state = 'pending' WHERE state = 'running'");
      transaction.commit();
    }
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
  settings_ = options.settings.empty() ? ledger_settings(config) : options.settings;
  if (have_decided(database_)) {
    if (const auto difference = changed_setting(database_, settings_)) {
      throw ConfigError(config.output.dir + ": " + difference->text() +
                        "; name another folder, or use --fresh to move that run aside");
    }
  }
  change([&] {
    database_.execute("DELETE FROM settings");
    Statement setting(database_, "INSERT INTO settings VALUES(?1, ?2)");
    for (const auto& [name, value] : settings_)
      setting.bind(1, std::string_view(name)).bind(2, std::string_view(value)).run();
    Statement meta(database_, "INSERT OR REPLACE INTO meta VALUES('configuration', ?1)");
    const std::string text = stored_configuration(config);
    meta.bind_blob(1, std::string_view(text)).run();
    seal_configuration(database_);
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
    if (notes_ && notes_->has_shortage()) count_running(database_, shortages_name);
    database_.execute("UPDATE slides SET state = 'pending' WHERE state = 'running'");
  }
  transaction.commit();
  if (notes_) notes_->given_back();
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

void Ledger::files_begun(std::size_t slide) { notes_->add_files(slides_.at(slide).id); }

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
  update.bind(32, unix_microseconds()).bind(33, entry.id).run();
  seal_row(database_, entry.id);
  if (result.done || !may_have_left(entry, result)) forget_files(database_, entry.id);
}

/// Whether files of a slide that failed may have their names: an earlier attempt died, or couldn't write, when it had
/// named some. An attempt that fails names none.
bool Ledger::may_have_left(const Slide& slide, const SlideResult& result) {
  if (result.failure.cause == cause_of_deaths || result.failure.cause == cause_of_shortages) return true;
  if (!slide.had_begun) return false;
  Statement select(database_, "SELECT image_name FROM slides WHERE id = ?1 AND image_name IS NOT NULL");
  return select.bind(1, slide.id).step() && may_have_files(file().parent_path(), select.text(0));
}

std::vector<Ledger::EarlierFiles> Ledger::keep(std::span<const Ended> slides) {
  std::vector<EarlierFiles> earlier;
  if (slides.empty()) return earlier;
  std::vector<std::vector<std::string>> files;
  change([&] {
    // From here on the folder has something of its own.
    database_.execute("DELETE FROM meta WHERE name = 'joined'");
    for (const Ended& ended : slides) {
      files.push_back(files_of_slide(database_, slides_.at(ended.slide).id));
      keep_row(ended);
    }
  });
  // Files of what the slide or its outlines were would be taken for those of what they are.
  for (std::size_t i = 0; i < slides.size(); ++i) {
    const SlideResult& result = *slides[i].result;
    std::vector<std::string>& former = files[i];
    std::erase_if(former, [&result](const std::string& name) {
      const bool is_made = std::ranges::find(result.artifacts, name, &Artifact::file) != result.artifacts.end();
      return is_made || (result.done && name == map_path(result.map_file));
    });
    SetAside where = set_aside(file().parent_path(), former);
    if (!where.folder.empty() || !where.refusal.empty()) earlier.push_back({result.path, std::move(where)});
  }
  return earlier;
}

std::vector<Ledger::EarlierFiles> Ledger::ended(std::size_t slide, SlideResult& result) {
  check_unchanged(slide, result);
  const Ended one = {slide, &result};
  return keep({&one, 1});
}

void Ledger::map_renamed(std::size_t slide, const std::string& name) {
  change([&] {
    Statement update(database_, "UPDATE slides SET map_name = ?1 WHERE id = ?2");
    update.bind_blob(1, std::string_view(name)).bind(2, slides_.at(slide).id).run();
  });
}

}  // namespace slidestream
