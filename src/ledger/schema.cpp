#include "ledger/schema.hpp"

#include <sys/vfs.h>

#include <slidestream/error.hpp>
#include <system_error>
#include <utility>

namespace slidestream {

namespace {

constexpr std::int64_t application_id = 0x536c5374;  // "SlSt"
constexpr std::int64_t schema_version = 1;

// Paths are bytes and needn't be UTF-8. `position` and `mine` belong to the manifest of the last start: a slide that
// it didn't name has none. Counts are unsigned 64-bit numbers, the lowest byte first; sums decimal text, for they have
// 128 bits. Digests are XXH64, of a row's result (slide_row.hpp) and of a map's bytes; what has none isn't checked.
constexpr const char* tables = R"sql(
CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE settings(name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE owner(
  one INTEGER PRIMARY KEY CHECK(one = 1), token TEXT NOT NULL, host TEXT NOT NULL, boot TEXT NOT NULL,
  pid_space TEXT NOT NULL, pid INTEGER NOT NULL, start INTEGER NOT NULL, since INTEGER NOT NULL,
  beats INTEGER NOT NULL, beat_at INTEGER NOT NULL);
CREATE TABLE slides(
  id INTEGER PRIMARY KEY,
  canonical BLOB NOT NULL UNIQUE,
  path BLOB NOT NULL,
  position INTEGER,
  mine INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT 'pending' CHECK(state IN ('pending', 'running', 'done', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  size INTEGER, modified INTEGER, hash INTEGER,
  ended_at INTEGER,
  error BLOB,
  width INTEGER, height INTEGER, codec TEXT, colour TEXT, level INTEGER, mpp REAL,
  missing_tiles INTEGER, bad_tiles INTEGER, backend TEXT, seconds REAL, file_bytes INTEGER,
  windows INTEGER, value_count INTEGER, clipped INTEGER, value_sum TEXT, square_sum TEXT,
  map_columns INTEGER, map_rows INTEGER, map_name BLOB,
  histogram BLOB, gpu_fallback_tiles INTEGER, map_digest INTEGER, digest INTEGER);
CREATE INDEX slides_by_position ON slides(position);
CREATE TABLE maps(
  slide INTEGER NOT NULL REFERENCES slides(id), part INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE(slide, part));
)sql";

std::int64_t pragma(Database& database, const char* sql) {
  Statement statement(database, sql);
  return statement.step() ? statement.integer(0) : 0;
}

JournalMode set_journal(Database& database, JournalMode journal) {
  if (journal == JournalMode::automatic) {
    const bool shared = !network_file_system(database.file().parent_path()).empty();
    journal = shared ? JournalMode::rollback : JournalMode::wal;
  }
  const bool wal = journal == JournalMode::wal;
  Statement statement(database, wal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
  const std::string wanted = wal ? "wal" : "delete";
  if (!statement.step() || statement.text(0) != wanted) {
    throw OutputError(database.file().string() + ": the journal can't be set to " + wanted +
                      "; try output.journal = \"" + (wal ? "rollback" : "wal") + "\"");
  }
  // The change is committed when the statement ends.
  statement.run();
  return journal;
}

}  // namespace

std::string network_file_system(const std::filesystem::path& folder) {
  struct ::statfs status {};
  if (::statfs(folder.empty() ? "." : folder.c_str(), &status) != 0) return {};
  constexpr std::pair<unsigned long, const char*> known[] = {
      {0x6969, "NFS"},        {0x517b, "SMB"},       {0xff534d42, "CIFS"},   {0xfe534d42, "SMB"},
      {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},  {0x00c36400, "CephFS"}, {0x19830326, "BeeGFS"},
      {0x5346414f, "AFS"},    {0x01021997, "9P"},    {0x65735546, "FUSE"},   {0x7461636f, "OCFS2"},
      {0x01161970, "GFS2"},   {0xaad7aaea, "PanFS"}, {0x013111a8, "IBRIX"},  {0x20030528, "OrangeFS"},
  };
  for (const auto& [magic, name] : known) {
    if (static_cast<unsigned long>(status.f_type) == magic) return name;
  }
  return {};
}

JournalMode set_up_writer(Database& database, JournalMode journal) {
  journal = set_journal(database, journal);
  // EXTRA also syncs the folder when a rollback journal goes; with WAL it is FULL.
  database.execute("PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON");
  return journal;
}

void check_schema(Database& database) {
  const std::int64_t version = pragma(database, "PRAGMA user_version");
  if (pragma(database, "PRAGMA application_id") != application_id || version < 1) {
    throw OutputError(database.file().string() + ": isn't a ledger of this program");
  }
  if (version > schema_version) {
    throw OutputError(database.file().string() + ": has schema version " + std::to_string(version) +
                      ", and this program knows up to " + std::to_string(schema_version));
  }
  // Statements name columns alone: they must be what they were made to be, and nothing that is computed.
  std::string_view left = tables;
  Statement select(database, "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?1");
  for (const char* name : {"meta", "settings", "owner", "slides", "maps"}) {
    left.remove_prefix(left.find("CREATE TABLE"));
    const std::string_view wanted = left.substr(0, left.find(';'));
    left.remove_prefix(wanted.size());
    select.bind(1, std::string_view(name));
    if (!select.step() || select.bytes(0) != wanted) database.fail_damaged(std::string("table ") + name);
    select.reset();
  }
}

std::unique_ptr<Database> open_to_read(const std::filesystem::path& file) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) {
    throw OutputError(file.string() + ": " +
                      (code ? code : std::make_error_code(std::errc::no_such_file_or_directory)).message());
  }
  // Opening a pipe for reading would wait for a writer.
  if (!std::filesystem::is_regular_file(file, code)) throw OutputError(file.string() + ": isn't a regular file");
  const auto open = [&](DatabaseAccess access) {
    auto database = std::make_unique<Database>(file, access);
    database->execute("PRAGMA query_only = ON");
    check_schema(*database);
    return database;
  };
  // A connection that may write recovers what a dead process left, and leaves no files behind. Over a network the
  // other process may live on another machine, and its unfinished work is none of ours.
  if (network_file_system(file.parent_path()).empty()) {
    try {
      return open(DatabaseAccess::read_write);
    } catch (const OutputError&) {
      // No right to write, perhaps.
    }
  }
  try {
    return open(DatabaseAccess::read);
  } catch (const OutputError&) {
    const std::filesystem::path log = file.string() + "-wal";
    if (std::filesystem::exists(log, code) && std::filesystem::file_size(log, code) > 0) throw;
    if (std::filesystem::exists(file.string() + "-journal", code)) throw;
  }
  return open(DatabaseAccess::immutable);
}

void check_slides_table(Database& database) {
  Statement check(database, "PRAGMA integrity_check(slides)");
  if (check.step() && check.text(0) != "ok") database.fail_damaged(check.text(0));
}

void create_or_check_schema(Database& database) {
  const bool empty = pragma(database, "SELECT count(*) FROM sqlite_schema") == 0;
  if (!empty) return check_schema(database);
  database.execute(tables);
  database.execute(("PRAGMA application_id = " + std::to_string(application_id)).c_str());
  database.execute(("PRAGMA user_version = " + std::to_string(schema_version)).c_str());
}

}  // namespace slidestream
