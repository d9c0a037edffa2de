#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

#include "ledger/database.hpp"
#include "ledger/ledger.hpp"
#include "ledger/slide_row.hpp"
#include "output/views.hpp"

namespace slidestream {

/// The slides of a run that ended, as its ledger has them at one moment: a connection of its own, so that the run goes
/// on meanwhile. Used by one thread.
class LedgerView final : public SlideSource {
 public:
  /// \throws OutputError.
  LedgerView(const std::filesystem::path& file, std::size_t bins);
  /// Of a ledger in use: of that one, whatever lies under its name now.
  LedgerView(Ledger& ledger, std::size_t bins);
  ~LedgerView() override;

  void for_each(const std::function<void(const SlideResult&)>& visit) override;
  std::map<std::string, std::string> deciding() override;

  /// Paths of the slides that are neither done nor failed.
  std::vector<std::string> missing();

  /// Visits slides with a map: the place in the manifest, and the result without the map's values.
  void for_each_map(const std::function<void(std::size_t position, const SlideResult&)>& visit);
  /// Fills in the values of a map of that place's slide; false when they aren't what was written.
  bool read_map(std::size_t position, WindowMap& map);

 private:
  Database database_;
  RowReader rows_;
};

}  // namespace slidestream
