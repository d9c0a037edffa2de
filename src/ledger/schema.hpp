#pragma once

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

/// Makes the tables of an empty database; in another, checks that they are this program's. \throws OutputError.
void create_or_check_schema(Database& database);

/// A connection that changes nothing in a ledger, whoever writes it and whether or not this process may write there.
/// \throws OutputError.
std::unique_ptr<Database> open_to_read(const std::filesystem::path& file);

/// Checks alone. \throws OutputError when it isn't a ledger, or a newer program's.
void check_schema(Database& database);
/// Whether the table of slides and its indices agree with each other, down to every page. \throws OutputError.
void check_slides_table(Database& database);

}  // namespace slidestream
