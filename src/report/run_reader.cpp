#include "report/run_reader.hpp"

#include <slidestream/error.hpp>

#include "ledger/fingerprint.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/status.hpp"
#include "ledger/stored_map.hpp"

namespace slidestream::report {

RunReader::RunReader(const std::filesystem::path& folder) : database_(open_to_read(folder / ledger_name)) {
  database_->execute("BEGIN");
  const auto configuration = read_configuration(*database_);
  if (!configuration) throw OutputError(database_->file().string() + ": holds no run");
  config_ = parse_config(*configuration, database_->file().string() + ", configuration");
  check_holds_run(*database_);
  check_list(*database_);
}

bool RunReader::is_joined() {
  Statement select(*database_, "SELECT EXISTS (SELECT 1 FROM meta WHERE name = 'joined')");
  return select.step() && select.integer(0) != 0;
}

std::uint64_t RunReader::unfinished() { return count_own("state NOT IN ('done', 'failed')"); }

std::uint64_t RunReader::failed() { return count_own("state = 'failed'"); }

std::uint64_t RunReader::of_others() {
  Statement select(*database_,
                   "SELECT count(*) FROM slides WHERE position IS NOT NULL AND NOT mine AND state = 'done'");
  return select.step() ? static_cast<std::uint64_t>(select.integer(0)) : 0;
}

std::uint64_t RunReader::count_own(const char* condition) {
  Statement select(*database_,
                   std::string("SELECT count(*) FROM slides WHERE position IS NOT NULL AND mine AND ") + condition);
  return select.step() ? static_cast<std::uint64_t>(select.integer(0)) : 0;
}

void RunReader::for_each(const std::function<void(const LedgerSlide&)>& visit) {
  Statement select(*database_,
                   "SELECT " + row_columns +
                       ", canonical, id FROM slides WHERE position IS NOT NULL AND mine AND state IN ('done', "
                       "'failed') ORDER BY position, id");
  RowReader rows(*database_, static_cast<std::size_t>(config_.analysis.bins));
  while (select.step()) {
    LedgerSlide slide;
    slide.result = rows.read(select);
    slide.canonical = select.text(row_column_count);
    slide.id = select.integer(row_column_count + 1);
    visit(slide);
  }
}

bool RunReader::read_map(std::int64_t id, WindowMap& map) {
  return map.columns > 0 && map.rows > 0 && read_stored_map(*database_, id, map);
}

}  // namespace slidestream::report
