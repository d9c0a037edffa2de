#include "ledger/journal_guard.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <exception>
#include <slidestream/error.hpp>
#include <span>
#include <string_view>
#include <utility>

namespace slidestream {

namespace {

constexpr std::array<unsigned char, 8> journal_magic = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
constexpr std::string_view journal_suffix = "-journal";

constexpr const char* names_another =
    "names another file, which SQLite would delete; no run's journal does, and it isn't used";

sqlite3_vfs* system_vfs = nullptr;

std::string& refusal() noexcept {
  thread_local std::string text;
  return text;
}

/// Reported as damage: what lies in the folder is the reason.
int refuse(const char* name, std::string_view why) {
  refusal() = std::string(name == nullptr ? "a journal" : name) + ": " + std::string(why);
  return SQLITE_CORRUPT;
}

std::uint64_t big_endian(const unsigned char* bytes) noexcept {
  return std::uint64_t{bytes[0]} << 24 | std::uint64_t{bytes[1]} << 16 | std::uint64_t{bytes[2]} << 8 | bytes[3];
}

bool is_magic(const unsigned char* bytes) noexcept {
  return std::memcmp(bytes, journal_magic.data(), journal_magic.size()) == 0;
}

/// A file that has become shorter is being written, and so not what a dead process left.
int read_some(sqlite3_file& file, std::span<unsigned char> to, sqlite3_int64 at) {
  const int code = file.pMethods->xRead(&file, to.data(), static_cast<int>(to.size()), at);
  return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

/// Its end is the name's length, a sum of its bytes and the mark. SQLite asks for more than that.
int check_end(sqlite3_file& file, const char* name, sqlite3_int64 size) {
  std::array<unsigned char, 16> end{};
  if (size < static_cast<sqlite3_int64>(end.size())) return SQLITE_OK;
  const int code = read_some(file, end, size - static_cast<sqlite3_int64>(end.size()));
  if (code != SQLITE_OK) return code;
  return is_magic(end.data() + 8) && big_endian(end.data()) != 0 ? refuse(name, names_another) : SQLITE_OK;
}

/// What a transaction cut off the ledger lies in its journal, unless nothing was in those pages.
int check_growth(sqlite3_file& file, const char* name, sqlite3_int64 size) {
  constexpr std::uint64_t largest_page = 65536;
  constexpr std::uint64_t most_empty = std::uint64_t{64} << 20;
  std::array<unsigned char, 28> head{};
  if (size < static_cast<sqlite3_int64>(head.size())) return SQLITE_OK;
  if (const int code = read_some(file, head, 0); code != SQLITE_OK) return code;
  struct ::stat status {};
  const std::string ledger(name, std::strlen(name) - journal_suffix.size());
  // SQLite looks at a journal that doesn't begin so no further.
  if (!is_magic(head.data()) || ::stat(ledger.c_str(), &status) != 0) return SQLITE_OK;
  // Old journals don't tell the size of pages.
  const std::uint64_t told = big_endian(head.data() + 24);
  const std::uint64_t page = told == 0 ? largest_page : told;
  const std::uint64_t pages = big_endian(head.data() + 16);
  const auto held = static_cast<std::uint64_t>(status.st_size) + static_cast<std::uint64_t>(size);
  if (pages <= (held + most_empty) / page) return SQLITE_OK;
  return refuse(name, "gives the ledger " + std::to_string(pages) + " pages of " + std::to_string(page) +
                          " bytes, far more than both hold; it isn't used");
}

int check_journal(sqlite3_file& file, const char* name) {
  if (name == nullptr || !std::string_view(name).ends_with(journal_suffix)) return SQLITE_OK;
  sqlite3_int64 size = 0;
  if (const int code = file.pMethods->xFileSize(&file, &size); code != SQLITE_OK) return code;
  const int code = check_end(file, name, size);
  return code == SQLITE_OK ? check_growth(file, name, size) : code;
}

int open_guarded(sqlite3_vfs* /*self*/, const char* name, sqlite3_file* file, int flags, int* opened) noexcept {
  file->pMethods = nullptr;
  try {
    // A journal that was written after it was looked at.
    if ((flags & SQLITE_OPEN_SUPER_JOURNAL) != 0) return refuse(name, "is named by a journal; it isn't used");
    const int code = system_vfs->xOpen(system_vfs, name, file, flags, opened);
    if (code != SQLITE_OK || (flags & SQLITE_OPEN_MAIN_JOURNAL) == 0) return code;
    const int found = check_journal(*file, name);
    if (found == SQLITE_OK) return SQLITE_OK;
    file->pMethods->xClose(file);
    file->pMethods = nullptr;
    return found;
  } catch (const std::exception&) {
    if (file->pMethods != nullptr) file->pMethods->xClose(file);
    file->pMethods = nullptr;
    return SQLITE_NOMEM;
  }
}

int delete_guarded(sqlite3_vfs* /*self*/, const char* name, int sync_folder) noexcept {
  const std::string_view text = name;
  if (text.ends_with(journal_suffix) || text.ends_with("-wal"))
    return system_vfs->xDelete(system_vfs, name, sync_folder);
  try {
    return refuse(name, "isn't deleted: it is none of a ledger's files");
  } catch (const std::exception&) {
    return SQLITE_NOMEM;
  }
}

/// The system's layer in all but two calls.
struct GuardedVfs {
  GuardedVfs() {
    system_vfs = sqlite3_vfs_find(nullptr);
    if (system_vfs == nullptr) throw OutputError("SQLite has no layer of the system to open files by");
    vfs = *system_vfs;
    vfs.zName = "slidestream";
    vfs.pNext = nullptr;
    vfs.xOpen = open_guarded;
    vfs.xDelete = delete_guarded;
    if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK) throw OutputError("SQLite takes no layer to open files by");
  }
  sqlite3_vfs vfs{};
};

}  // namespace

const char* guarded_vfs() {
  // Connections may be closed after static objects were destroyed.
  static GuardedVfs* const guarded = new GuardedVfs();
  return guarded->vfs.zName;
}

std::string take_refusal() noexcept { return std::exchange(refusal(), std::string()); }

}  // namespace slidestream
