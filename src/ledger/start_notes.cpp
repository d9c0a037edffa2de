#include "ledger/start_notes.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <slidestream/error.hpp>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "ledger/database.hpp"
#include "ledger/owner.hpp"
#include "ledger/slide_counts.hpp"
#include "system/denied.hpp"

namespace slidestream {

namespace {

namespace fs = std::filesystem;

/// In `meta`: the token of the process whose notes the ledger has, and how many of them.
constexpr std::string_view entered_name = "started";

constexpr std::string_view line_of(std::string_view note) { return note.substr(1, note.size() - 2); }

fs::path notes_beside(const fs::path& ledger) { return ledger.string() + "-started"; }

bool is_folder(const fs::path& file) {
  struct ::stat status {};
  return ::lstat(file.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

OutputError failed(const fs::path& file) { return OutputError(file.string() + ": " + reason_of(errno, file)); }

void enter_starts(Database& database, std::span<const std::int64_t> ids, const std::string& token, std::size_t count) {
  Statement start(database, "UPDATE slides SET state = 'running', attempts = attempts + 1 WHERE id = ?1");
  Statement files(database, "INSERT OR IGNORE INTO meta VALUES('files of ' || (-?1), '')");
  for (const std::int64_t id : ids) (id < 0 ? files : start).bind(1, id).run();
  const std::string value = token + " " + std::to_string(count);
  Statement store(database, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)");
  store.bind(1, entered_name).bind_blob(2, std::string_view(value)).run();
}

/// No slide is being worked on: the process ended.
void end_all(Database& database) { database.execute("UPDATE slides SET state = 'pending' WHERE state = 'running'"); }

/// How many notes of this process the ledger has.
std::size_t entered_of(Database& database, const std::string& token) {
  Statement read(database, "SELECT value FROM meta WHERE name = ?1");
  read.bind(1, entered_name);
  if (!read.step()) return 0;
  std::istringstream value(read.text(0));
  std::string of;
  std::size_t count = 0;
  return value >> of >> count && of == token ? count : 0;
}

struct LeftNotes {
  std::string token;
  std::vector<std::int64_t> ids;
  bool stop = false;      ///< it was asked to stop
  bool shortage = false;  ///< it ended without memory or threads
};

/// Nothing where no process left any, or what has the name is none of ours. The last line may be cut short.
LeftNotes read_notes(const fs::path& file) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  LeftNotes notes;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return notes;
  struct ::stat status {};
  std::string text;
  if (::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    char part[65536];
    for (::ssize_t got = 0; text.size() < most_bytes && (got = ::read(descriptor, part, sizeof part)) > 0;) {
      text.append(part, static_cast<std::size_t>(got));
    }
  }
  ::close(descriptor);
  std::string_view rest = text;
  for (std::size_t end = 0; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    const std::string_view line = rest.substr(0, end);
    if (notes.token.empty()) {
      notes.token = line;
      continue;
    }
    if (line == line_of(stop_note)) notes.stop = true;
    if (line == line_of(shortage_note)) notes.shortage = true;
    std::int64_t id = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), id);
    if (error == std::errc() && stop == line.data() + line.size()) notes.ids.push_back(id);
  }
  return notes;
}

}  // namespace

StartNotes::StartNotes(const fs::path& ledger, std::string token)
    : file_(notes_beside(ledger)), token_(std::move(token)) {
  ::unlink(file_.c_str());
  descriptor_ = ::open(file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  const std::string line = token_ + "\n";
  if (descriptor_ >= 0 && ::write(descriptor_, line.data(), line.size()) == static_cast<::ssize_t>(line.size())) return;
  if (descriptor_ < 0 && errno == EEXIST && is_folder(file_)) {
    throw OutputError(file_.string() + ": is a folder, where a run keeps a file; remove it, or move it away");
  }
  const OutputError error = failed(file_);
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(file_.c_str());
  }
  throw error;
}

StartNotes::~StartNotes() {
  struct ::stat own {
  }, there{};
  // Another process may have taken over.
  const bool is_own = ::fstat(descriptor_, &own) == 0 && ::lstat(file_.c_str(), &there) == 0 &&
                      own.st_dev == there.st_dev && own.st_ino == there.st_ino;
  ::close(descriptor_);
  if (is_own && !has_shortage_) ::unlink(file_.c_str());
}

void StartNotes::add_files(std::int64_t id) { add(-id); }

void StartNotes::add(std::int64_t id) {
  const std::string line = std::to_string(id) + "\n";
  const std::lock_guard lock(mutex_);
  ::ssize_t written = 0;
  do {
    written = ::write(descriptor_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written >= 0 && written < static_cast<::ssize_t>(line.size())) errno = ENOSPC;
  if (written != static_cast<::ssize_t>(line.size())) throw failed(file_);
  if (waiting_.empty()) since_ = std::chrono::steady_clock::now();
  waiting_.push_back(id);
}

void StartNotes::add_stop() noexcept {
  // Where it can't be written, a death counts as it did.
  [[maybe_unused]] const ::ssize_t written = ::write(descriptor_, stop_note.data(), stop_note.size());
}

void StartNotes::add_shortage() noexcept {
  has_shortage_ = true;
  // Where it can't be written, it counts as a death.
  [[maybe_unused]] const ::ssize_t written = ::write(descriptor_, shortage_note.data(), shortage_note.size());
}

std::size_t StartNotes::enter(Database& database) {
  const std::lock_guard lock(mutex_);
  if (!waiting_.empty()) enter_starts(database, waiting_, token_, before_ + waiting_.size());
  return waiting_.size();
}

void StartNotes::entered(std::size_t count) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  before_ += count;
  since_ = std::chrono::steady_clock::now();
}

bool StartNotes::wait_long() {
  const std::lock_guard lock(mutex_);
  return !waiting_.empty() && std::chrono::steady_clock::now() - since_ > std::chrono::seconds(1);
}

bool was_asked_to_stop(Database& database) {
  const LeftNotes notes = read_notes(notes_beside(database.file()));
  Statement owner(database, "SELECT token FROM owner");
  return notes.stop && owner.step() && owner.text(0) == notes.token;
}

bool has_notes(const Database& database) {
  struct ::stat status {};
  return ::lstat(notes_beside(database.file()).c_str(), &status) == 0;
}

std::vector<std::int64_t> notes_to_enter(Database& database) {
  LeftNotes left = read_notes(notes_beside(database.file()));
  const std::size_t known = std::min(entered_of(database, left.token), left.ids.size());
  left.ids.erase(left.ids.begin(), left.ids.begin() + static_cast<std::ptrdiff_t>(known));
  return std::move(left.ids);
}

bool may_have_lost_notes(Database& database) {
  const auto owner = read_owner(database);
  return owner && (owner->process.boot != this_process().boot || !has_notes(database));
}

void replace_lost_notes(Database& database) {
  Transaction transaction(database);
  // Also one that is tried again has the cause that it failed by.
  database.execute(
      "INSERT OR IGNORE INTO meta SELECT 'files of ' || id, '' FROM slides WHERE state IN ('pending', 'running') AND "
      "coalesce(length(cause), 0) = 0");
  transaction.commit();
}

std::unordered_set<std::int64_t> slides_with_files(Database& database) {
  std::unordered_set<std::int64_t> slides;
  Statement select(database, "SELECT CAST(substr(name, 10) AS INTEGER) FROM meta WHERE name LIKE 'files of %'");
  while (select.step()) slides.insert(select.integer(0));
  for (const std::int64_t id : notes_to_enter(database)) {
    if (id < 0) slides.insert(-id);
  }
  return slides;
}

void forget_files(Database& database, std::int64_t id) {
  Statement remove(database, "DELETE FROM meta WHERE name = 'files of ' || ?1");
  remove.bind(1, id).run();
}

void enter_left_notes(Database& database) {
  const fs::path file = notes_beside(database.file());
  const LeftNotes left = read_notes(file);
  const std::size_t known = entered_of(database, left.token);
  if (known < left.ids.size() || left.stop || left.shortage) {
    Transaction transaction(database);
    if (known < left.ids.size()) {
      enter_starts(database, std::span(left.ids).subspan(known), left.token, left.ids.size());
    }
    // Whoever was asked to stop ends by that, whatever lacks it then.
    if (left.shortage && !left.stop) count_running(database, shortages_name);
    if (left.stop || left.shortage) end_all(database);
    transaction.commit();
  }
  ::unlink(file.c_str());
}

}  // namespace slidestream
