#include "ledger/row_digest.hpp"

#include <sqlite3.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

void add_number(ContentHash& hash, std::uint64_t value) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t k = 0; k < bytes.size(); ++k) bytes[k] = std::byte(value >> (8 * k) & 0xff);
  hash.add(bytes);
}

void add_value(ContentHash& hash, sqlite3_value* value) {
  // Numbers of types as ledgers have them.
  enum : std::uint64_t { integer, real, text, blob, null };
  const int type = sqlite3_value_type(value);
  switch (type) {
    case SQLITE_INTEGER:
      add_number(hash, integer);
      add_number(hash, static_cast<std::uint64_t>(sqlite3_value_int64(value)));
      break;
    case SQLITE_FLOAT:
      add_number(hash, real);
      add_number(hash, std::bit_cast<std::uint64_t>(sqlite3_value_double(value)));
      break;
    case SQLITE_TEXT:
    case SQLITE_BLOB: {
      const void* const bytes = sqlite3_value_blob(value);
      const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
      if (bytes == nullptr && size > 0) throw std::bad_alloc();
      add_number(hash, type == SQLITE_TEXT ? text : blob);
      add_number(hash, size);
      hash.add(std::span(static_cast<const std::byte*>(bytes), size));
      break;
    }
    default:
      add_number(hash, null);
  }
}

void row_digest(sqlite3_context* context, int count, sqlite3_value** values) noexcept {
  try {
    ContentHash hash;
    for (sqlite3_value* value : std::span(values, static_cast<std::size_t>(count))) add_value(hash, value);
    sqlite3_result_int64(context, static_cast<std::int64_t>(hash.value()));
  } catch (...) {
    sqlite3_result_error_nomem(context);
  }
}

}  // namespace

int add_row_digest(sqlite3* handle) noexcept {
  return sqlite3_create_function_v2(handle, "row_digest", -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
                                    nullptr, row_digest, nullptr, nullptr, nullptr);
}

}  // namespace slidestream
