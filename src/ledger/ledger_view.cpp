#include "ledger/ledger_view.hpp"

#include <cstring>
#include <slidestream/error.hpp>

#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"

namespace slidestream {

LedgerView::LedgerView(const std::filesystem::path& file, std::size_t bins)
    : database_(file, DatabaseAccess::read), bins_(bins) {
  check_schema(database_);
  database_.execute("BEGIN");
}

LedgerView::~LedgerView() = default;

void LedgerView::for_each(const std::function<void(const SlideResult&)>& visit) {
  Statement select(database_, std::string("SELECT ") + row_columns +
                                  " FROM slides WHERE position IS NOT NULL AND mine AND state IN ('done', 'failed') "
                                  "ORDER BY position");
  while (select.step()) visit(read_row(select, bins_, database_.file().string()));
}

std::vector<std::string> LedgerView::missing() {
  Statement select(database_,
                   "SELECT path FROM slides WHERE position IS NOT NULL AND mine AND state NOT IN ('done', 'failed') "
                   "ORDER BY position");
  std::vector<std::string> paths;
  while (select.step()) paths.push_back(select.text(0));
  return paths;
}

void LedgerView::for_each_map(const std::function<void(std::size_t position, const SlideResult&)>& visit) {
  Statement select(database_, std::string("SELECT ") + row_columns +
                                  ", position FROM slides WHERE position IS NOT NULL AND mine AND state = 'done' AND "
                                  "map_columns > 0 AND map_rows > 0 ORDER BY position");
  while (select.step()) {
    const SlideResult slide = read_row(select, bins_, database_.file().string());
    visit(static_cast<std::size_t>(select.integer(row_column_count)), slide);
  }
}

void LedgerView::read_map(std::size_t position, WindowMap& map) {
  const auto damaged = [&] {
    throw OutputError(database_.file().string() + ": damaged: a map isn't as large as its slide's windows");
  };
  Statement size(database_,
                 "SELECT coalesce(sum(length(bytes)), 0) FROM maps JOIN slides ON slides.id = maps.slide WHERE "
                 "position = ?1");
  size.bind(1, static_cast<std::int64_t>(position));
  const auto wanted = static_cast<Int128>(map.columns) * static_cast<Int128>(map.rows) * 8;
  if (!size.step() || static_cast<Int128>(size.integer(0)) != wanted) damaged();
  size.reset();
  map.values.resize(static_cast<std::size_t>(wanted / sizeof(float)));
  Statement select(database_,
                   "SELECT bytes FROM maps JOIN slides ON slides.id = maps.slide WHERE position = ?1 ORDER BY part");
  select.bind(1, static_cast<std::int64_t>(position));
  const std::span<std::byte> room = std::as_writable_bytes(std::span(map.values));
  std::size_t at = 0;
  while (select.step()) {
    const std::string_view bytes = select.bytes(0);
    if (bytes.size() > room.size() - at) damaged();
    std::memcpy(room.data() + at, bytes.data(), bytes.size());
    at += bytes.size();
  }
}

}  // namespace slidestream
