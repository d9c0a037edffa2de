#include "cli/run_targets.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cli/image_file.hpp"
#include "config/suggest.hpp"
#include "ledger/database.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/image_names.hpp"
#include "ledger/ledger.hpp"
#include "ledger/schema.hpp"

namespace slidestream::cli {

namespace {

namespace fs = std::filesystem;

/// Device and number: the same for all names of a file.
using FileKey = std::pair<std::uint64_t, std::uint64_t>;

std::optional<FileKey> key_of(const fs::path& file) {
  struct ::stat status {};
  if (file.empty() || ::stat(file.c_str(), &status) != 0) return std::nullopt;
  return FileKey{status.st_dev, status.st_ino};
}

/// Also where the files aren't there yet.
bool is_same_place(const fs::path& one, const fs::path& other) {
  std::error_code code;
  if (const auto key = key_of(one)) return key == key_of(other);
  const fs::path resolved = fs::weakly_canonical(one, code);
  return !resolved.empty() && resolved == fs::weakly_canonical(other, code);
}

/// The names that files of the slides begin with, as the run will give them.
std::unordered_set<std::string> names_of_slides(const Config& config, const ExpandedInputs& inputs) {
  std::vector<std::string> names(inputs.slides.size());
  std::vector<std::string> others;
  std::vector<ManifestEntry> manifest;
  manifest.reserve(inputs.slides.size());
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < inputs.slides.size(); ++i) {
    manifest.push_back({inputs.slides[i], inputs.canonical[i], true});
    places.emplace(inputs.canonical[i], i);
  }
  try {
    const auto database = open_to_read(fs::path(config.output.dir) / ledger_name);
    Statement select(*database, "SELECT canonical, image_name FROM slides WHERE image_name IS NOT NULL");
    while (select.step()) {
      const auto place = places.find(select.text(0));
      (place == places.end() ? others.emplace_back() : names[place->second]) = select.text(1);
    }
  } catch (const Error&) {
    // There is none, or who begins the run says what is wrong with it.
  }
  fill_image_names(manifest, others, names, config.output.portable_names);
  return {names.begin(), names.end()};
}

/// Tells names of images, outlines and maps that the run makes of its slides. Nobody reads its files of features.
class MadeFiles {
 public:
  MadeFiles(const Config& config, const ExpandedInputs& inputs, const RunOptions& options)
      : config_(config), names_(names_of_slides(config, inputs)), makers_(config.operators.run) {
    if (options.work != nullptr) makers_ = {"labels", "image"};
  }

  bool has(std::string_view folder, const std::string& file) const {
    if (folder == "maps") {
      const char* const suffix = config_.output.maps == MapFormat::tiff ? ".tif" : ".npy";
      return file.ends_with(suffix) && names_.contains(file.substr(0, file.rfind('.')));
    }
    if (const auto image = image_file(file); image && image->format != config_.image.format) return false;
    for (std::size_t dot = file.find('.'); dot != std::string::npos; dot = file.find('.', dot + 1)) {
      const std::string_view rest = std::string_view(file).substr(dot + 1);
      const bool is_made =
          std::ranges::any_of(makers_, [rest](const std::string& maker) { return rest.starts_with(maker + "."); });
      if (is_made && names_.contains(file.substr(0, dot))) return true;
    }
    return false;
  }

 private:
  const Config& config_;
  std::unordered_set<std::string> names_;
  std::vector<std::string> makers_;
};

/// Files of a run whose names don't depend on slides.
std::vector<fs::path> fixed_targets(const Config& config, const RunOptions& options) {
  if (!options.file.empty()) return {options.file};
  const fs::path folder = config.output.dir;
  const std::vector<std::string> files = files_of_runs();
  std::vector<fs::path> targets = {folder / "progress.json"};
  targets.reserve(files.size() + 1);
  for (const std::string& file : files) targets.push_back(folder / file);
  return targets;
}

/// Files that the run is going to write, as far as they are there.
std::map<FileKey, fs::path> existing_targets(const Config& config, const ExpandedInputs& inputs,
                                             const RunOptions& options) {
  std::map<FileKey, fs::path> found;
  const auto add = [&found](const fs::path& file) {
    if (const auto key = key_of(file)) found.emplace(*key, file);
  };
  for (const fs::path& file : fixed_targets(config, options)) add(file);
  add(options.trace);
  add(options.metrics);
  if (!options.file.empty()) return found;
  std::optional<MadeFiles> made;
  std::vector<std::string> folders = {"images"};
  if (config.output.maps != MapFormat::none) folders.emplace_back("maps");
  for (const std::string& folder : folders) {
    std::error_code code;
    for (fs::directory_iterator entry(fs::path(config.output.dir) / folder, code);
         !code && entry != fs::directory_iterator(); entry.increment(code)) {
      if (!made) made.emplace(config, inputs, options);
      if (made->has(folder, entry->path().filename().string())) add(entry->path());
    }
  }
  return found;
}

/// Files that the configuration and the command name, besides slides.
std::vector<std::string> named_inputs(const Config& config, const RunOptions& options) {
  std::vector<std::string> named = config.input.slides;
  named.insert(named.end(), {options.config_file, config.stain.reference, config.tissue.model, config.model.file,
                             config.volume.networks, config.dicom.attributes});
  return named;
}

/// \throws ConfigError where one of the files that are going to be written is read as `input`
void check_input(const std::map<FileKey, fs::path>& targets, const fs::path& input) {
  const auto key = key_of(input);
  const auto target = key ? targets.find(*key) : targets.end();
  if (target == targets.end()) return;
  throw ConfigError(one_line(target->second.string()) + ": would be written, and the run reads it as " +
                    one_line(input.string()));
}

void check_named_targets(const Config& config, const RunOptions& options) {
  for (const std::string& named : {options.trace, options.metrics}) {
    if (named.empty()) continue;
    for (const fs::path& file : fixed_targets(config, options)) {
      if (!is_same_place(named, file)) continue;
      throw ConfigError(one_line(named) + ": is " + one_line(file.string()) + ", which the run itself writes");
    }
  }
}

}  // namespace

void check_targets(const std::vector<fs::path>& files, const std::vector<fs::path>& inputs) {
  std::map<FileKey, fs::path> targets;
  for (const fs::path& file : files) {
    if (const auto key = key_of(file)) targets.emplace(*key, file);
  }
  for (const fs::path& input : inputs) check_input(targets, input);
}

void check_run_targets(const Config& config, const ExpandedInputs& inputs, const RunOptions& options) {
  check_named_targets(config, options);
  const std::map<FileKey, fs::path> targets = existing_targets(config, inputs, options);
  if (targets.empty()) return;
  const auto check = [&targets](const fs::path& input) { check_input(targets, input); };
  for (const std::string& named : named_inputs(config, options)) check(named);
  std::string folder;
  for (const std::string& slide : inputs.slides) {
    check(slide);
    if (reads_outlines(config)) check(outlines_beside(slide));
    // A slide may be in a folder that is an image. Slides of one folder follow each other.
    const fs::path parent = fs::path(slide).parent_path();
    if (folder != parent.string()) check(parent);
    folder = parent.string();
  }
}

}  // namespace slidestream::cli
