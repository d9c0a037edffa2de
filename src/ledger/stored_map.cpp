#include "ledger/stored_map.hpp"

#include <algorithm>
#include <cstring>

#include "config/suggest.hpp"
#include "ledger/slide_row.hpp"
#include "output/text.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

/// The row has more than the part.
constexpr std::size_t part_bytes = std::size_t{64} << 20;
static_assert(part_bytes < largest_ledger_value);

/// Columns x rows x 2 numbers.
constexpr int bytes_per_window = 2 * static_cast<int>(sizeof(float));

}  // namespace

MapParts parts_of(const WindowMap& map) {
  return [&map](const auto& visit) {
    auto bytes = std::as_bytes(std::span(map.values));
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), part_bytes));
      visit(part);
      bytes = bytes.subspan(part.size());
    }
  };
}

MapParts parts_of(Database& database, std::int64_t slide) {
  return [&database, slide](const auto& visit) {
    Statement select(database, "SELECT bytes FROM maps WHERE slide = ?1 ORDER BY part");
    select.bind(1, slide);
    while (select.step()) {
      const std::string_view bytes = select.bytes(0);
      visit(std::as_bytes(std::span(bytes.data(), bytes.size())));
    }
  };
}

std::optional<std::uint64_t> digest_of(const MapParts& parts) {
  ContentHash hash;
  bool any = false;
  parts([&](std::span<const std::byte> bytes) {
    any = any || !bytes.empty();
    hash.add(bytes);
  });
  return any ? std::optional(hash.value()) : std::nullopt;
}

std::optional<std::uint64_t> store_map(Database& database, std::int64_t slide, const MapParts& parts) {
  Statement remove(database, "DELETE FROM maps WHERE slide = ?1");
  remove.bind(1, slide).run();
  Statement insert(database, "INSERT INTO maps VALUES(?1, ?2, ?3)");
  ContentHash hash;
  std::int64_t part = 0;
  parts([&](std::span<const std::byte> bytes) {
    hash.add(bytes);
    insert.bind(1, slide).bind(2, part++).bind_blob(3, bytes).run();
  });
  return part > 0 ? std::optional(hash.value()) : std::nullopt;
}

bool read_stored_map(Database& database, std::int64_t slide, WindowMap& map) {
  Statement known(database,
                  "SELECT map_digest, (SELECT coalesce(sum(length(bytes)), 0) FROM maps WHERE slide = slides.id) FROM "
                  "slides WHERE id = ?1");
  known.bind(1, slide);
  const auto wanted = static_cast<Int128>(map.columns) * static_cast<Int128>(map.rows) * bytes_per_window;
  if (!known.step() || static_cast<Int128>(known.integer(1)) != wanted) return false;
  const auto digest = unsigned_or_null(known, 0);
  known.reset();
  map.values.resize(static_cast<std::size_t>(wanted / static_cast<int>(sizeof(float))));
  const std::span<std::byte> room = std::as_writable_bytes(std::span(map.values));
  std::size_t at = 0;
  ContentHash hash;
  bool fits = true;
  parts_of(database, slide)([&](std::span<const std::byte> bytes) {
    fits = fits && bytes.size() <= room.size() - at;
    if (!fits || bytes.empty()) return;
    std::memcpy(room.data() + at, bytes.data(), bytes.size());
    at += bytes.size();
    hash.add(bytes);
  });
  // A map of no windows has none.
  return fits && at == room.size() && (room.empty() || digest == hash.value());
}

std::string damaged_map_text(const std::filesystem::path& ledger, const std::string& slide) {
  return ledger.string() + ": damaged: the map of " + one_line(json_text(slide)) + " isn't what was written";
}

}  // namespace slidestream
