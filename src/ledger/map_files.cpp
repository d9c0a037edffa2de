#include "ledger/map_files.hpp"

#include <filesystem>
#include <optional>
#include <slidestream/pipeline.hpp>
#include <utility>

#include "ledger/ledger_view.hpp"

namespace slidestream {

std::vector<std::string> map_files(const Config& config, const std::vector<std::string>& slides) {
  if (config.output.maps == MapFormat::none) return {};
  std::vector<std::string> files = map_names(slides, config.output.portable_names);
  for (std::string& file : files) file += config.output.maps == MapFormat::tiff ? ".tif" : ".npy";
  return files;
}

std::vector<std::size_t> write_missing_maps(const Config& config, Ledger& ledger,
                                            const std::vector<std::string>& files) {
  if (files.empty()) return {};
  const std::filesystem::path folder = std::filesystem::path(config.output.dir) / "maps";
  auto view = std::make_optional<LedgerView>(ledger, static_cast<std::size_t>(config.analysis.bins));
  std::vector<std::pair<std::size_t, SlideResult>> wanted;
  view->for_each_map([&](std::size_t place, const SlideResult& slide) {
    if (slide.map_file == files.at(place) && is_whole_map(config, slide.map, folder / slide.map_file)) return;
    wanted.emplace_back(place, slide);
    wanted.back().second.sums = {};
  });
  std::vector<std::size_t> unreadable;
  std::vector<std::size_t> renamed;
  for (auto& [place, slide] : wanted) {
    if (!view->read_map(place, slide.map)) {
      unreadable.push_back(place);
      continue;
    }
    const std::string& file = files.at(place);
    ledger.check_place();
    write_map(config, slide, file.substr(0, file.rfind('.')));
    slide.map = {};
    if (slide.map_file != file) renamed.push_back(place);
  }
  // With a rollback journal a commit waits until nobody reads.
  view.reset();
  for (const std::size_t place : renamed) ledger.map_renamed(place, files.at(place));
  return unreadable;
}

}  // namespace slidestream
