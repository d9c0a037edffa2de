#pragma once

#include <string>

namespace slidestream {

/// The name of the layer through which SQLite opens, and deletes, a ledger's files: the system's, with two bounds on a
/// rollback journal, which may come from anywhere. One that names another file (a super-journal) isn't used: SQLite
/// would read that file whole, and delete it. Nor is one that lets the ledger grow far beyond what both hold. Each is
/// looked at in the open file that SQLite is to use. \throws OutputError where SQLite has no layer of the system
const char* guarded_vfs();

/// Why this thread was refused a file, with the file's name, since it was last asked; empty: it wasn't.
std::string take_refusal() noexcept;

}  // namespace slidestream
