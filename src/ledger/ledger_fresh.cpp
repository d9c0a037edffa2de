#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <slidestream/statistic.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/aside.hpp"
#include "ledger/ledger.hpp"
#include "ledger/owner.hpp"
#include "ledger/schema.hpp"
#include "ledger/start_notes.hpp"
#include "ledger/versions.hpp"
#include "output/views.hpp"
#include "system/there.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// Tables that a run writes beside its ledger.
std::vector<std::string> run_tables() {
  std::vector<std::string> files = {"slides.csv", "corpus.json", "histograms.npy", "failures.csv", "artifacts.csv"};
  for (std::string& file : statistic_files()) files.push_back(std::move(file));
  return files;
}

/// What is beside a ledger that is written, or was left by a kill.
constexpr std::array side_suffixes = {"-wal", "-shm", "-journal", "-started"};

fs::path beside_ledger(const char* suffix) { return std::string(ledger_name) + suffix; }

/// Whether something is there that isn't an empty file.
bool has_something(const fs::path& file) {
  const fs::file_type type = entry_at(file);
  std::error_code code;
  return type != fs::file_type::not_found && !(type == fs::file_type::regular && fs::file_size(file, code) == 0);
}

bool is_folder_or_link(const fs::path& path) {
  const fs::file_type type = entry_at(path);
  return type == fs::file_type::symlink || type == fs::file_type::directory;
}

bool is_file_or_link(const fs::path& path) {
  const fs::file_type type = entry_at(path);
  return type == fs::file_type::symlink || type == fs::file_type::regular;
}

bool begins_with(const fs::path& file, std::string_view header) {
  if (entry_at(file) != fs::file_type::regular) return false;
  std::ifstream in(file, std::ios::binary);
  std::string begin(header.size(), '\0');
  return in.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == header;
}

/// Whether a run's tables lie there, as one of them says by its first line.
bool has_own_table(const fs::path& folder) {
  return begins_with(folder / "slides.csv", "path,status,error,") ||
         begins_with(folder / "failures.csv", "path,stage,tile,cause") ||
         begins_with(folder / "artifacts.csv", "path,operator,product,file,") ||
         begins_with(folder / labels_name, labels_header);
}

/// Whether a ledger that is gone left what SQLite or a run has beside it.
bool has_side_file(const fs::path& folder) {
  return std::ranges::any_of(side_suffixes,
                             [&](const char* suffix) { return has_something(folder / beside_ledger(suffix)); });
}

/// The first file that lies in the folder of what a run would replace there; empty: none does. Beside a ledger SQLite's
/// files are the ledger's, also where it is still empty. \throws OutputError where something can't be looked at
std::string first_result(const Config& config) {
  const fs::path folder = config.output.dir;
  std::vector<std::string> names = run_tables();
  if (writes_labels(config)) names.emplace_back(labels_name);
  for (const std::string& name : names) {
    if (is_file_or_link(folder / name)) return name;
  }
  if (has_entry(folder / ledger_name)) return {};
  for (const char* suffix : side_suffixes) {
    const fs::path name = beside_ledger(suffix);
    if (has_something(folder / name)) return name.string();
  }
  return {};
}

/// In one file, so that one renaming moves it: a write-ahead log left behind would hold the last slides. Readers of the
/// log are waited for; SQLite itself doesn't.
void fold_log(Database& database) {
  constexpr int most_tries = 100;
  for (int tries = 1;; ++tries) {
    try {
      set_up_writer(database, JournalMode::rollback);
      return;
    } catch (const UnreadableError&) {
      throw;
    } catch (const OutputError&) {
      if (tries == most_tries) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

/// A ledger that this process has, while it is moved.
class OwnedLedger {
 public:
  /// \throws UnreadableError where what it lists can't be trusted
  OwnedLedger(const fs::path& file, const Ledger::Options& options) : database_(file, DatabaseAccess::read_write) {
    const bool is_current = check_schema(database_) == current_ledger_version;
    const Claim claimed = claim(database_, options.watch);
    try {
      if (claimed.has_lost_notes && is_current) replace_lost_notes(database_);
      enter_left_notes(database_);
      check_table(database_, "slides");
      listed_ = files_of_slides(database_, file.parent_path());
      fold_log(database_);
    } catch (...) {
      give_back();
      throw;
    }
  }
  ~OwnedLedger() { give_back(); }
  OwnedLedger(const OwnedLedger&) = delete;
  OwnedLedger& operator=(const OwnedLedger&) = delete;

  const ListedFiles& listed() const noexcept { return listed_; }
  /// \throws OutputError
  void disown() {
    database_.execute("DELETE FROM owner");
    is_owned_ = false;
  }

 private:
  void give_back() noexcept {
    try {
      if (is_owned_) disown();
    } catch (const std::exception&) {
      // The next process finds that this one is dead.
    }
  }

  Database database_;
  bool is_owned_ = true;
  ListedFiles listed_;
};

void tell_passed_over(const ListedFiles& listed, const fs::path& ledger, const Ledger::Options& options) {
  if (listed.passed_over == 0 || !options.on_passed_over) return;
  const std::size_t others = listed.passed_over - 1;
  options.on_passed_over(ledger.string() + ": lists \"" + one_line(listed.first_passed_over) +
                         "\" among the files of slides, which no run here makes; it is passed over" +
                         (others > 0 ? ", and others: " + std::to_string(others) : std::string()));
}

/// Says that files of slides stay: nothing beside their folders says that a run made them.
void tell_left(const fs::path& folder, const Ledger::Options& options) {
  std::string kinds;
  for (const char* kind : slide_folders) {
    if (!names_in(folder / kind).empty()) kinds += std::string(kinds.empty() ? "" : ", ") + kind;
  }
  if (kinds.empty() || !options.on_passed_over) return;
  options.on_passed_over(folder.string() + ": no " + ledger_name + " and no table of a run is there, so what is in " +
                         kinds + " stays");
}

/// Nothing where there is no ledger, or none that can be read.
std::unique_ptr<OwnedLedger> owned_ledger(const fs::path& file, const Ledger::Options& options) {
  if (!has_entry(file)) return nullptr;
  try {
    return std::make_unique<OwnedLedger>(file, options);
  } catch (const UnreadableError&) {
    return nullptr;
  }
}

}  // namespace

std::vector<std::string> files_of_runs() {
  std::vector<std::string> files = run_tables();
  files.emplace_back(labels_name);
  files.emplace_back(ledger_name);
  files.reserve(files.size() + side_suffixes.size());
  for (const char* suffix : side_suffixes) files.push_back(beside_ledger(suffix).string());
  return files;
}

void Ledger::check_folder(const Config& config) { check_folder(config, FolderLock(config.output.dir)); }

void Ledger::check_folder(const Config& config, const FolderLock& /*held*/) {
  const fs::path folder = config.output.dir;
  const fs::path file = folder / ledger_name;
  std::error_code code;
  // Who may not enter the folder writes nothing in it, and is told so then.
  const bool is_seen = fs::status_known(fs::symlink_status(file, code));
  if (!is_seen && code == std::errc::permission_denied) return;
  if (is_moving_aside(folder)) {
    throw ConfigError(folder.string() + ": an earlier run was being moved aside with --fresh, which was interrupted; " +
                      "add --fresh, which does the rest");
  }
  const auto has_ledger = [&] {
    const fs::file_type type = target_at(file);
    return type != fs::file_type::not_found && (type != fs::file_type::regular || fs::file_size(file, code) > 0);
  };
  if (has_ledger()) return;
  const std::string found = first_result(config);
  // A folder that wasn't there couldn't be held: another process may have made it since, its ledger before its tables.
  if (found.empty() || has_ledger()) return;
  const bool is_there = target_at(file) != fs::file_type::not_found;
  throw ConfigError(folder.string() + ": has " + found + ", but " +
                    (is_there ? "its run.sqlite is empty" : "no run.sqlite") +
                    "; name another folder, or use --fresh to move what is there aside");
}

bool Ledger::has_results(const Config& config) {
  const fs::path folder = config.output.dir;
  return has_entry(folder / ledger_name) || is_moving_aside(folder) || !first_result(config).empty();
}

std::string Ledger::move_aside(const Config& config, const Options& options) {
  const fs::path folder = config.output.dir;
  const fs::path file = folder / ledger_name;
  // Also from the moment that the ledger is given back: until it has moved, nobody else opens it.
  const FolderLock lock(folder);
  if (!has_results(config)) {
    tell_left(folder, options);
    return {};
  }
  refuse_if_in_use(file, false, options.watch);
  // Everything that may fail comes before the first file moves.
  std::unique_ptr<OwnedLedger> ledger = owned_ledger(file, options);
  MoveAside move(folder);
  std::error_code code;
  const bool was_run = has_something(file) || has_side_file(folder) || has_own_table(folder) || move.is_continued();
  if (ledger) {
    tell_passed_over(ledger->listed(), file, options);
    for (const fs::path& each : ledger->listed().files) move.move(each);
  } else if (was_run && !move.has(ledger_name)) {
    // Whose the files in them are, nobody can say.
    for (const char* kind : slide_folders) move.move(kind);
  } else if (!was_run) {
    tell_left(folder, options);
  }
  // All of it: the next run, which has a ledger, would write over what has the name of a map.
  move.move("maps");
  // The next run would add to it. A file of that name is somebody else's.
  if (was_run && is_folder_or_link(folder / earlier_of_failed)) move.move(earlier_of_failed);
  for (const std::string& name : run_tables()) move.move(name);
  // Of slides, a table with this name isn't the run's.
  if (writes_labels(config) || begins_with(folder / labels_name, labels_header)) move.move(labels_name);
  std::vector<fs::path> last;
  last.reserve(std::size(side_suffixes) + 1);
  for (const char* suffix : side_suffixes) last.push_back(beside_ledger(suffix));
  last.emplace_back(ledger_name);
  if (ledger) ledger->disown();
  std::string aside = move.end(last);
  // What is left in them isn't the run's.
  for (const char* kind : slide_folders) {
    if (fs::is_directory(fs::symlink_status(folder / kind, code))) fs::remove(folder / kind, code);
  }
  return aside;
}

}  // namespace slidestream
