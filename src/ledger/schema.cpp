#include "ledger/schema.hpp"

#include <sys/vfs.h>
#include <unistd.h>

#include <map>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <system_error>
#include <utility>

#include "config/suggest.hpp"
#include "ledger/aside.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/private_copy.hpp"
#include "ledger/versions.hpp"
#include "output/text.hpp"
#include "system/denied.hpp"

namespace slidestream {

namespace {

constexpr std::int64_t application_id = 0x536c5374;  // "SlSt"
const LedgerVersion& version_of(std::int64_t number) { return ledger_versions()[static_cast<std::size_t>(number - 1)]; }

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

std::int64_t check_schema(Database& database) {
  const std::int64_t number = pragma(database, "PRAGMA user_version");
  if (number == 0 && pragma(database, "SELECT count(*) FROM sqlite_schema") == 0) {
    throw UnreadableError(database.file().string() +
                          (may_be_claimed(database.file().parent_path())
                               ? ": is empty: a run has only just begun there, or ended before it began; ask again"
                               : ": holds no run: a start ended before its first slide; the same command starts it "
                                 "again"));
  }
  if (pragma(database, "PRAGMA application_id") != application_id || number < 1) {
    throw UnreadableError(database.file().string() + ": isn't a ledger of this program");
  }
  if (number > current_ledger_version) {
    throw UnreadableError(database.file().string() + ": has schema version " + std::to_string(number) +
                          ", and this program knows up to " + std::to_string(current_ledger_version) +
                          "; a newer slidestream made it, and can read it");
  }
  // Statements name columns alone: they must be what they were made to be, and nothing that is computed.
  Statement select(database, "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1");
  for (const LedgerTable& table : version_of(number).tables) {
    select.bind(1, table.name);
    if (!select.step() || select.bytes(0) != table.create) {
      database.fail_damaged("table " + std::string(table.name));
    }
    select.reset();
  }
  // They compute something, or change rows, whenever a table is looked at or written.
  Statement others(database,
                   "SELECT 1 FROM main.sqlite_schema WHERE type IN ('index', 'trigger') AND sql IS NOT NULL AND "
                   "CAST(sql AS BLOB) != "
                   "CAST(?1 AS BLOB)");
  if (others.bind(1, version_of(number).indices).step()) {
    database.fail_damaged("an index or trigger that isn't this program's");
  }
  return number;
}

void show_as_current(Database& database, std::int64_t number) {
  if (number == current_ledger_version) return;
  std::string views = "PRAGMA temp_store = MEMORY;";
  const auto show = [&views](std::string_view name, std::string_view as, const std::string& select) {
    views += "CREATE TEMP VIEW " + std::string(name) + std::string(as) + " AS " + select + ";";
  };
  const auto suffix = [](std::int64_t version) { return "_" + std::to_string(version); };
  for (const LedgerTable& table : version_of(number).tables) {
    show(table.name, suffix(number), "SELECT * FROM main." + std::string(table.name));
  }
  for (std::int64_t next = number + 1; next <= current_ledger_version; ++next) {
    for (const LedgerTable& table : version_of(next).tables) {
      const bool same = table.from_before.empty();
      show(table.name, suffix(next),
           same ? "SELECT * FROM " + std::string(table.name) + suffix(next - 1) : table.from_before);
    }
  }
  for (const LedgerTable& table : version_of(current_ledger_version).tables) {
    show(table.name, "", "SELECT * FROM " + std::string(table.name) + suffix(current_ledger_version));
  }
  database.execute(views.c_str());
}

namespace {

/// What is none of the four states is no result and no work left to do: a reader would pass the slide over. The digest
/// of a row that ended is looked at where the row is read.
void check_states(Database& database) {
  Statement select(database,
                   "SELECT path FROM slides WHERE (state IN ('pending', 'running', 'done', 'failed')) IS NOT TRUE "
                   "LIMIT 1");
  if (select.step())
    database.fail_damaged("the row of " + one_line(json_text(select.text(0))) + " isn't what was written");
}

std::unique_ptr<Database> open_checked(const std::filesystem::path& file);

}  // namespace

std::unique_ptr<Database> open_to_read(const std::filesystem::path& file) {
  std::unique_ptr<Database> database = open_checked(file);
  check_states(*database);
  return database;
}

namespace {

std::unique_ptr<Database> open_checked(const std::filesystem::path& file) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) {
    throw OutputError(file.string() + ": " +
                      (code ? code : std::make_error_code(std::errc::no_such_file_or_directory)).message());
  }
  // Opening a pipe for reading would wait for a writer.
  if (!std::filesystem::is_regular_file(file, code)) throw OutputError(file.string() + ": isn't a regular file");
  const auto checked = [](std::unique_ptr<Database> database) {
    show_as_current(*database, check_schema(*database));
    database->execute("PRAGMA query_only = ON");
    return database;
  };
  const auto open = [&](DatabaseAccess access) { return checked(std::make_unique<Database>(file, access)); };
  // Over a network the other process may live on another machine, and its unfinished work is none of ours.
  if (network_file_system(file.parent_path()).empty()) {
    try {
      // What a dead process left is for the next run to recover.
      if (auto copy = PrivateCopy::of_left(file)) return checked(std::make_unique<Database>(file, std::move(copy)));
    } catch (const UnreadableError&) {
      throw;
    } catch (const OutputError&) {
      // No room for a copy, perhaps.
    }
    try {
      // A connection that may write leaves no files behind.
      return open(DatabaseAccess::read_write);
    } catch (const UnreadableError&) {
      // Also for who only reads, whose connection would leave files behind.
      throw;
    } catch (const OutputError&) {
      // No right to write, perhaps.
    }
  }
  try {
    return open(DatabaseAccess::read);
  } catch (const OutputError& error) {
    const std::filesystem::path log = file.string() + "-wal";
    const bool has_log = std::filesystem::exists(log, code) && std::filesystem::file_size(log, code) > 0;
    const bool has_unfinished = has_log || std::filesystem::exists(file.string() + "-journal", code);
    const bool is_unreadable = dynamic_cast<const UnreadableError*>(&error) != nullptr;
    if (has_unfinished && !is_unreadable && ::access(file.c_str(), W_OK) != 0) {
      throw OutputError(error.what() +
                        std::string(": a process has unfinished work beside it, or left it; who may "
                                    "write the file starts the run again, or asks for its status: ") +
                        rights_text(file, "write it"));
    }
    if (has_unfinished) throw;
  }
  return open(DatabaseAccess::immutable);
}

}  // namespace

void check_table(Database& database, const char* name) {
  Statement check(database, std::string("PRAGMA main.integrity_check(") + name + ")");
  if (check.step() && check.text(0) != "ok") database.fail_damaged(check.text(0));
}

void mend_indices(Database& database, std::int64_t most_checked) {
  const auto fault = [&database] {
    Statement check(database, "PRAGMA main.integrity_check(1)");
    return check.step() && check.text(0) != "ok" ? check.text(0) : std::string();
  };
  const std::int64_t pages = pragma(database, "PRAGMA main.page_count");
  const bool is_looked_at = pages <= most_checked / pragma(database, "PRAGMA main.page_size");
  if (is_looked_at && fault().empty()) return;
  database.execute("REINDEX");
  if (!is_looked_at) return;
  if (const std::string left = fault(); !left.empty()) database.fail_damaged(left);
}

void refuse_older(Database& database, std::int64_t number) {
  if (number == current_ledger_version) return;
  const std::map<std::string, std::string> settings = stored_settings(database);
  const auto program = settings.find(program_version_key);
  throw ConfigError(database.file().parent_path().string() + ": has a ledger of version " + std::to_string(number) +
                    (program == settings.end() ? "" : ", which slidestream " + one_line(program->second) + " made") +
                    ", and this is slidestream " + version() + ", which goes on with version " +
                    std::to_string(current_ledger_version) +
                    "; go on with the program that made it, or use --fresh to move that run aside");
}

void create_or_check_schema(Database& database) {
  const bool empty = pragma(database, "SELECT count(*) FROM sqlite_schema") == 0;
  if (!empty) return refuse_older(database, check_schema(database));
  const LedgerVersion& current = version_of(current_ledger_version);
  for (const LedgerTable& table : current.tables) database.execute(std::string(table.create).c_str());
  database.execute(std::string(current.indices).c_str());
  database.execute(("PRAGMA application_id = " + std::to_string(application_id)).c_str());
  database.execute(("PRAGMA user_version = " + std::to_string(current_ledger_version)).c_str());
}

}  // namespace slidestream
