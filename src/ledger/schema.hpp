#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <slidestream/config.hpp>

#include "ledger/database.hpp"

namespace slidestream {

inline constexpr const char* ledger_name = "run.sqlite";

/// The network file system that a folder lies on, such as "NFS"; empty: none that is known. SQLite's write-ahead log
/// shares memory between processes, which machines don't.
std::string network_file_system(const std::filesystem::path& folder);

/// Sets the connection up to write: durable commits, and a journal that fits the file system. Returns which.
JournalMode set_up_writer(Database& database, JournalMode journal);

/// Makes the tables of an empty database; in another, checks that they are of the version that this program writes.
/// \throws OutputError; ConfigError as `refuse_older`.
void create_or_check_schema(Database& database);

/// A connection that changes nothing in a ledger, whoever writes it and whether or not this process may write there.
/// Its tables are seen as the current version has them. \throws OutputError.
std::unique_ptr<Database> open_to_read(const std::filesystem::path& file);

/// The version of a ledger, whose tables are as that version makes them. \throws UnreadableError when it isn't a
/// ledger, or a newer program's.
std::int64_t check_schema(Database& database);
/// Shows the tables of a ledger, of the version `number`, as the current one's: views of this connection alone, one
/// above the other for each version in between. The file stays as it is, and can't be written through them.
void show_as_current(Database& database, std::int64_t number);
/// \throws ConfigError, naming both versions, when the ledger's isn't the current one: who writes doesn't go on with
/// what another version began.
void refuse_older(Database& database, std::int64_t number);
/// Whether a table and its indices agree with each other, down to every page. \throws UnreadableError.
void check_table(Database& database, const char* name);
/// For who goes on with a ledger that is damaged somewhere, in a transaction: indices are made anew if SQLite finds a
/// fault, or the file has more bytes than it may look at. \throws DamagedError where a fault stays.
void mend_indices(Database& database, std::int64_t most_checked);

}  // namespace slidestream
