#include "ledger/map_files.hpp"

#include <filesystem>
#include <optional>
#include <unordered_set>
#include <utility>

#include "ledger/image_names.hpp"
#include "ledger/ledger_view.hpp"
#include "output/names.hpp"

namespace slidestream {

namespace {

/// \param names  those that slides have already, by place in the manifest
std::vector<std::string> named_maps(const Config& config, const std::vector<ManifestEntry>& manifest,
                                    std::vector<std::string> names) {
  std::unordered_set<std::string> taken;
  for (std::string& name : names) {
    if (!name.empty() && !taken.insert(folded_name(name)).second) name.clear();
  }
  fill_image_names(manifest, {}, names, config.output.portable_names);
  for (std::string& name : names) name += config.output.maps == MapFormat::tiff ? ".tif" : ".npy";
  return names;
}

}  // namespace

std::vector<std::string> map_files(const Config& config, Ledger& ledger, const std::vector<ManifestEntry>& manifest) {
  if (config.output.maps == MapFormat::none) return {};
  return named_maps(config, manifest, ledger.image_names());
}

std::vector<std::string> map_files(const Config& config, const std::vector<ManifestEntry>& manifest,
                                   const std::vector<std::string>& names) {
  if (config.output.maps == MapFormat::none) return {};
  return named_maps(config, manifest, names);
}

std::vector<std::string> map_files(const Config& config, const ExpandedInputs& inputs) {
  if (config.output.maps == MapFormat::none) return {};
  std::vector<ManifestEntry> manifest;
  manifest.reserve(inputs.slides.size());
  for (std::size_t i = 0; i < inputs.slides.size(); ++i)
    manifest.push_back({inputs.slides[i], inputs.canonical[i], true});
  return named_maps(config, manifest, std::vector<std::string>(manifest.size()));
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
