#include "ledger/map_files.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <slidestream/error.hpp>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
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

/// Whether it can be a map's name: a damaged row may have any.
bool is_map_name(const std::string& file) {
  return !file.empty() && file.find('/') == std::string::npos && file.find('\0') == std::string::npos;
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

void check_maps(const Config& config, const std::vector<ManifestEntry>& manifest, const std::vector<std::string>& files,
                const Ledger::ListedMaps& listed) {
  namespace fs = std::filesystem;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (listed.slides.contains(manifest[i].canonical) || listed.files.contains(files[i])) continue;
    const fs::path file = fs::path(config.output.dir) / map_path(files[i]);
    std::error_code code;
    const fs::file_status there = fs::symlink_status(file, code);
    if (!fs::exists(there) || (fs::is_regular_file(there) && fs::file_size(file, code) == 0)) continue;
    throw ConfigError(one_line(file.string()) +
                      (fs::is_symlink(there) ? ": is a link, and this program writes none"
                                             : ": is there already, and no ledger in the folder lists it") +
                      "; move it away, or name another folder");
  }
}

void remove_changed_maps(const Config& config, const Ledger::ListedMaps& before, const Ledger::ListedMaps& now,
                         const std::vector<ManifestEntry>& manifest, const std::vector<std::string>& files) {
  const std::filesystem::path folder = config.output.dir;
  std::unordered_map<std::string_view, std::string_view> names;
  for (std::size_t i = 0; i < files.size(); ++i) names.emplace(manifest[i].canonical, files[i]);
  for (const auto& [slide, map] : before.slides) {
    const auto found = now.slides.find(slide);
    const auto name = names.find(slide);
    const bool is_renamed = name != names.end() && name->second != map.file;
    if (found != now.slides.end() && found->second.digest == map.digest && !is_renamed) continue;
    const auto size = before.files.find(map.file);
    const std::filesystem::path file = folder / map_path(map.file);
    // What somebody else put there is moved aside.
    if (!is_map_name(map.file) || size == before.files.end() || !is_whole_map(config, size->second, file)) continue;
    std::error_code code;
    if (!std::filesystem::remove(file, code) && code) {
      throw OutputError(one_line(file.string()) + ": can't delete it: " + code.message());
    }
  }
}

bool is_foreign_map(const Config& config, const WindowMap& map, const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (map.columns <= 0 || map.rows <= 0 || !fs::is_regular_file(fs::symlink_status(file, code))) return false;
  return fs::file_size(file, code) > 0 && !code && !is_whole_map(config, map, file);
}

std::vector<std::string> foreign_maps(const Config& config, const Ledger::ListedMaps& listed) {
  std::vector<std::string> found;
  if (config.output.maps == MapFormat::none) return found;
  const std::string suffix = config.output.maps == MapFormat::tiff ? ".tif" : ".npy";
  const std::filesystem::path folder = config.output.dir;
  for (const auto& [file, map] : listed.files) {
    // Those of another format are of an earlier run.
    if (is_map_name(file) && file.ends_with(suffix) && is_foreign_map(config, map, folder / map_path(file)))
      found.push_back(file);
  }
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> spare_maps(const Config& config, const std::vector<std::string>& files) {
  std::vector<std::string> lines;
  const std::filesystem::path folder = config.output.dir;
  for (const std::string& file : files) {
    const std::string path = (folder / map_path(file)).string();
    const SetAside aside = set_aside(folder, {map_path(file)});
    if (aside.folder.empty()) {
      throw OutputError(aside.refusal.empty()
                            ? one_line(path) +
                                  ": isn't the one that the ledger lists, and lies behind a link or with another run; "
                                  "move it away"
                            : aside.refusal);
    }
    lines.push_back(one_line(path) + ": isn't the one that the ledger lists: moved to " +
                    one_line(aside.folder.string()));
  }
  return lines;
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
  // With a rollback journal a commit waits until nobody reads.
  view.reset();
  // Before the maps are there: one that no row lists would be in the way of the next start, or merge.
  for (const auto& [place, slide] : wanted) {
    if (slide.map_file != files.at(place)) ledger.map_renamed(place, files.at(place));
  }
  view.emplace(ledger, static_cast<std::size_t>(config.analysis.bins));
  std::vector<std::size_t> unreadable;
  for (auto& [place, slide] : wanted) {
    if (!view->read_map(place, slide.map)) {
      unreadable.push_back(place);
      continue;
    }
    const std::string& file = files.at(place);
    ledger.check_place();
    write_map(config, slide, file.substr(0, file.rfind('.')));
    slide.map = {};
  }
  return unreadable;
}

}  // namespace slidestream
