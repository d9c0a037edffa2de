#include "ledger/database.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <ios>
#include <new>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>
#include <utility>

#include "ledger/journal_guard.hpp"
#include "ledger/private_copy.hpp"
#include "ledger/row_digest.hpp"
#include "system/denied.hpp"
#include "system/full_storage.hpp"

namespace slidestream {

namespace {

int open_flags(DatabaseAccess access) {
  switch (access) {
    case DatabaseAccess::create:
      return SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case DatabaseAccess::read_write:
      return SQLITE_OPEN_READWRITE;
    case DatabaseAccess::read:
      return SQLITE_OPEN_READONLY;
    case DatabaseAccess::immutable:
      break;
  }
  return SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
}

std::string name_for(const std::filesystem::path& file, DatabaseAccess access) {
  if (access != DatabaseAccess::immutable) return file.string();
  constexpr char digits[] = "0123456789abcdef";
  std::string name = "file:";
  for (const char c : file.string()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_') {
      name += c;
    } else {
      name += {'%', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return name + "?immutable=1";
}

/// Why no file can be made in a folder; 0 when one can. A file that SQLite can't make it tries to read, and so comes to
/// say that there is none.
int why_no_file(const std::filesystem::path& folder) {
  const std::filesystem::path probe = folder / (".slidestream-" + std::to_string(::getpid()) + ".probe");
  const int descriptor = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return errno;
  ::close(descriptor);
  ::unlink(probe.c_str());
  return 0;
}

/// SQLite makes files that others of the group can't write. Its own files beside it get the same permissions.
void make_by_umask(const std::filesystem::path& file) {
  // Of a file that is there nothing may be closed: that would give up SQLite's locks.
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor >= 0) ::close(descriptor);
}

bool may(const std::string& file, int what) noexcept {
  return ::faccessat(AT_FDCWD, file.c_str(), what, AT_EACCESS) == 0;
}

bool is_for_writing(DatabaseAccess access) {
  return access == DatabaseAccess::create || access == DatabaseAccess::read_write;
}

bool has_write_ahead_log(const std::filesystem::path& file) {
  constexpr std::size_t version_at = 18;
  std::array<char, version_at + 2> head{};
  std::ifstream in(file, std::ios::binary);
  return in.read(head.data(), head.size()) && head[version_at] == 2 && head[version_at + 1] == 2;
}

/// Whether all is in the file, and nobody has it open, of a file that this process can't write. SQLite would make a log
/// of this user's beside it, and couldn't remove that again: those who may write the file couldn't write its log.
bool is_at_rest_for_reader(const std::filesystem::path& file) {
  const auto is_there = [&file](const char* suffix) { return may(file.string() + suffix, F_OK); };
  if (!is_there("") || may(file.string(), W_OK) || is_there("-journal")) return false;
  std::error_code code;
  const std::uintmax_t logged = is_there("-wal") ? std::filesystem::file_size(file.string() + "-wal", code) : 0;
  const bool is_open = is_there("-wal") && is_there("-shm");
  return !code && logged == 0 && !is_open && has_write_ahead_log(file);
}

/// What others who can't write an own file left beside it: an empty log, which would be in the way.
void remove_log_of_others(const std::filesystem::path& file) {
  const std::string log = file.string() + "-wal";
  const std::string index = file.string() + "-shm";
  struct ::stat status {};
  const auto is_own = [&status](const std::string& path) {
    return ::stat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid();
  };
  if (!is_own(file.parent_path().string()) || !is_own(file.string())) return;
  if (::lstat(log.c_str(), &status) == 0 && status.st_size > 0) return;
  for (const std::string& path : {log, index}) {
    const bool is_in_the_way = may(path, F_OK) && !may(path, W_OK) && !is_own(path);
    if (is_in_the_way) ::unlink(path.c_str());
  }
}

/// Which of a database's files this process mustn't read or write, with its permissions; empty: none.
std::string forbidden_file(const std::filesystem::path& file, bool to_write) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    const std::string path = file.string() + suffix;
    if (!may(path, F_OK) || may(path, to_write ? R_OK | W_OK : R_OK)) continue;
    return rights_text(path, to_write ? "write it" : "read it");
  }
  return {};
}

/// Opening a FIFO would wait for its other end. Behind a link lies what is another folder's.
void check_regular(const std::filesystem::path& file) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    const std::filesystem::path path = file.string() + suffix;
    std::error_code code;
    const auto status = std::filesystem::symlink_status(path, code);
    if (std::filesystem::is_symlink(status)) throw UnreadableError(path.string() + ": is a link, which isn't followed");
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      throw UnreadableError(path.string() + ": isn't a regular file");
    }
  }
}

std::string bound_text() { return std::to_string(largest_ledger_value >> 20) + " MiB"; }

/// What helps where a ledger is damaged. Who only reads it may be another command, whose --fresh means other results.
const char* remedy_for(DatabaseAccess access) {
  return access == DatabaseAccess::create ? "; --fresh moves such a run aside and starts anew"
                                          : "; the command that made it, with --fresh, moves it aside and starts anew";
}

void make_one_line(std::string& text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\n' || c == '\r'; }, ' ');
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const noexcept { sqlite3_close_v2(handle); }
void Statement::Finalise::operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }

Database::Database(const std::filesystem::path& file, DatabaseAccess access, std::chrono::milliseconds busy)
    : file_(file), access_(access) {
  check_regular(file);
  if (is_for_writing(access) && may(file.string(), F_OK) && !may(file.string(), W_OK)) fail(SQLITE_READONLY);
  if (access == DatabaseAccess::create) {
    remove_log_of_others(file);
    make_by_umask(file);
  }
  if (access == DatabaseAccess::read && is_at_rest_for_reader(file)) access = access_ = DatabaseAccess::immutable;
  open(name_for(file, access), open_flags(access), busy);
}

Database::Database(const std::filesystem::path& file, std::unique_ptr<PrivateCopy> copy)
    : file_(file), access_(DatabaseAccess::read), copy_(std::move(copy)) {
  open(copy_->file().string(), SQLITE_OPEN_READWRITE, std::chrono::milliseconds::zero());
  // The first look recovers it. A process that is killed later leaves no names.
  execute("SELECT count(*) FROM sqlite_schema");
  copy_->remove_names();
}

void Database::open(const std::string& name, int flags, std::chrono::milliseconds busy) {
  sqlite3* handle = nullptr;
  take_refusal();
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, guarded_vfs());
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(code);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, static_cast<int>(largest_ledger_value));
  sqlite3_extended_result_codes(handle, 1);
  set_patience(busy);
  // A ledger may come from anywhere: nothing in its schema is to run, and damage is to be found.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  execute("PRAGMA cell_size_check = ON");
  if (const int added = add_row_digest(handle); added != SQLITE_OK) fail(added);
}

Database::~Database() = default;

void Database::execute(const char* sql) {
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

std::int64_t Database::last_row() const noexcept { return sqlite3_last_insert_rowid(handle_.get()); }
std::int64_t Database::changed() const noexcept { return sqlite3_changes64(handle_.get()); }

void Database::fail(int code) const {
  // SQLite doesn't pass the system's reason on from every place.
  const int last = errno;
  if ((code & 0xff) == SQLITE_NOMEM) throw std::bad_alloc();
  std::string refused = take_refusal();
  if (!refused.empty()) {
    const std::string copy = copy_ ? copy_->file().string() : std::string();
    if (copy_ && refused.starts_with(copy)) refused.replace(0, copy.size(), file_.string());
    refused +=
        access_ == DatabaseAccess::create ? remedy_for(access_) : "; copy the results anew from where they were made";
    make_one_line(refused);
    throw UnreadableError(refused);
  }
  // What is written is measured before: it is a value in the file.
  if ((code & 0xff) == SQLITE_TOOBIG) fail_damaged("a value is larger than " + bound_text());
  std::string text = file_.string() + ": " + sqlite3_errstr(code);
  const char* detail = handle_ ? sqlite3_errmsg(handle_.get()) : nullptr;
  if (detail != nullptr && detail != std::string(sqlite3_errstr(code))) text += std::string(" (") + detail + ")";
  const int told = handle_ ? sqlite3_system_errno(handle_.get()) : 0;
  const int cause = code & 0xff;
  int system = told != 0 ? told : last;
  if (cause == SQLITE_CANTOPEN) {
    if (const int reason = why_no_file(file_.parent_path()); reason != 0) system = reason;
  }
  if (system != 0 && (cause == SQLITE_IOERR || cause == SQLITE_CANTOPEN)) {
    text += ": " + std::generic_category().message(system);
  }
  if (cause == SQLITE_READONLY || cause == SQLITE_CANTOPEN || cause == SQLITE_PERM) {
    if (const std::string found = forbidden_file(file_, is_for_writing(access_)); !found.empty()) text += ": " + found;
  }
  if (cause == SQLITE_BUSY) text += ": another process has it locked";
  // What a ledger is given fits its tables: an index that is damaged, or a row, is in the way.
  const bool unreadable = cause == SQLITE_CORRUPT || cause == SQLITE_NOTADB || cause == SQLITE_CONSTRAINT;
  if (unreadable) text += remedy_for(access_);
  make_one_line(text);
  if (unreadable) throw DamagedError(text);
  const bool has_reason = cause == SQLITE_IOERR || cause == SQLITE_CANTOPEN;
  throw_output_error(cause == SQLITE_FULL ? ENOSPC : has_reason ? system : 0, text);
}

void Database::fail_damaged(const std::string& what) const {
  std::string text = file_.string() + ": damaged: " + what + remedy_for(access_);
  make_one_line(text);
  throw DamagedError(text);
}

void Database::require_fits(std::size_t bytes) const {
  if (bytes <= largest_ledger_value) return;
  throw OutputError(file_.string() + ": a value of " + std::to_string(bytes) + " bytes is larger than " + bound_text() +
                    ", the bound of a ledger");
}

void Database::set_patience(std::chrono::milliseconds busy) noexcept {
  sqlite3_busy_timeout(handle_.get(), static_cast<int>(busy.count()));
}

Statement::Statement(Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database.handle(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) database.fail(code);
}

Statement& Statement::bind(int index, std::int64_t value) {
  if (const int code = sqlite3_bind_int64(statement_.get(), index, value); code != SQLITE_OK) database_.fail(code);
  return *this;
}

Statement& Statement::bind(int index, double value) {
  if (const int code = sqlite3_bind_double(statement_.get(), index, value); code != SQLITE_OK) database_.fail(code);
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  database_.require_fits(text.size());
  const int code =
      sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) database_.fail(code);
  return *this;
}

Statement& Statement::bind_blob(int index, std::span<const std::byte> bytes) {
  database_.require_fits(bytes.size());
  // A null pointer would be a NULL.
  const void* data = bytes.empty() ? "" : static_cast<const void*>(bytes.data());
  const int code = sqlite3_bind_blob64(statement_.get(), index, data, bytes.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) database_.fail(code);
  return *this;
}

Statement& Statement::bind_blob(int index, std::string_view bytes) {
  return bind_blob(index, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

Statement& Statement::bind_null(int index) {
  if (const int code = sqlite3_bind_null(statement_.get(), index); code != SQLITE_OK) database_.fail(code);
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  reset();
  if (code != SQLITE_DONE) database_.fail(code);
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() noexcept { sqlite3_reset(statement_.get()); }

Statement::Type Statement::type(int column) const noexcept {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_INTEGER:
      return Type::integer;
    case SQLITE_FLOAT:
      return Type::real;
    case SQLITE_TEXT:
      return Type::text;
    case SQLITE_BLOB:
      return Type::blob;
    default:
      return Type::null;
  }
}
std::int64_t Statement::integer(int column) const noexcept { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const noexcept { return sqlite3_column_double(statement_.get(), column); }

std::string_view Statement::bytes(int column) const noexcept {
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

Transaction::Transaction(Database& database) : database_(database) { database_.execute("BEGIN IMMEDIATE"); }

Transaction::~Transaction() {
  // Undoing can only fail where SQLite has undone it already.
  if (open_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  database_.execute("COMMIT");
  open_ = false;
}

}  // namespace slidestream
