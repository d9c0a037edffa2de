#pragma once

struct sqlite3;

namespace slidestream {

/// Gives a connection the SQL function `row_digest(VALUE, ...)`: XXH64 over its values as SQLite has them, as a signed
/// number. Each value counts as its type, its length where that varies, and its bytes, the lowest first. Returns
/// SQLite's code.
int add_row_digest(sqlite3* handle) noexcept;

}  // namespace slidestream
