#include "ledger/ledger_view.hpp"

#include "ledger/fingerprint.hpp"
#include "ledger/schema.hpp"
#include "ledger/stored_map.hpp"

namespace slidestream {

LedgerView::LedgerView(const std::filesystem::path& file, std::size_t bins)
    : database_(file, DatabaseAccess::read), rows_(database_, bins) {
  show_as_current(database_, check_schema(database_));
  database_.execute("BEGIN");
}

LedgerView::LedgerView(Ledger& ledger, std::size_t bins) : LedgerView(ledger.file(), bins) { ledger.check_place(); }

LedgerView::~LedgerView() = default;

void LedgerView::for_each(const std::function<void(const SlideResult&)>& visit) {
  Statement select(database_, "SELECT " + row_columns +
                                  " FROM slides WHERE position IS NOT NULL AND mine AND state IN ('done', 'failed') "
                                  "ORDER BY position");
  while (select.step()) visit(rows_.read(select));
}

std::map<std::string, std::string> LedgerView::deciding() { return stored_settings(database_); }

std::vector<std::string> LedgerView::missing() {
  Statement select(database_,
                   "SELECT path FROM slides WHERE position IS NOT NULL AND mine AND state NOT IN ('done', 'failed') "
                   "ORDER BY position");
  std::vector<std::string> paths;
  while (select.step()) paths.push_back(select.text(0));
  return paths;
}

void LedgerView::for_each_map(const std::function<void(std::size_t position, const SlideResult&)>& visit) {
  Statement select(database_, "SELECT " + row_columns +
                                  ", position FROM slides WHERE position IS NOT NULL AND mine AND state = 'done' AND "
                                  "map_columns > 0 AND map_rows > 0 ORDER BY position");
  while (select.step()) {
    const SlideResult slide = rows_.read(select);
    visit(static_cast<std::size_t>(select.integer(row_column_count)), slide);
  }
}

bool LedgerView::read_map(std::size_t position, WindowMap& map) {
  Statement select(database_, "SELECT id FROM slides WHERE position = ?1");
  select.bind(1, static_cast<std::int64_t>(position));
  return select.step() && read_stored_map(database_, select.integer(0), map);
}

}  // namespace slidestream
