#include "cli/run_inputs.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/own_marks.hpp"
#include "config/suggest.hpp"
#include "inputs/inputs.hpp"
#include "slide/formats.hpp"

namespace slidestream::cli {

namespace {

/// By its name, which elsewhere than in OME-TIFF may be that of another program's slide.
bool is_partial_image(const std::filesystem::path& slide) {
  const std::string name = slide.filename().string();
  if (name.ends_with(".partial.ome.tif") || name.ends_with(".partial.ome.tiff")) return true;
  const auto is_partial = [](const std::filesystem::path& path) {
    return path.stem().extension() == ".partial" || path.extension() == ".partial";
  };
  const bool is_instance = has_suffix(name, ".dcm");
  return is_partial(is_instance ? slide.parent_path() : slide) && is_own_image(slide);
}

/// Of an image that isn't whole, white tiles stand for those that aren't there yet.
void leave_out_partial_images(ExpandedInputs& inputs) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < inputs.slides.size(); ++i) {
    if (is_partial_image(inputs.canonical[i])) continue;
    if (i != kept) {
      inputs.slides[kept] = std::move(inputs.slides[i]);
      inputs.canonical[kept] = std::move(inputs.canonical[i]);
    }
    ++kept;
  }
  const std::size_t left_out = inputs.slides.size() - kept;
  if (left_out == 0) return;
  inputs.slides.resize(kept);
  inputs.canonical.resize(kept);
  inputs.warnings.push_back(std::to_string(left_out) + (left_out == 1 ? " image" : " images") +
                            " named .partial among the inputs: not whole, and left out");
}

/// A slide's name without its suffixes. An instance of DICOM has its folder's.
std::string bare_name(const std::filesystem::path& slide) {
  const std::filesystem::path named = has_suffix(slide.string(), ".dcm") ? slide.parent_path() : slide;
  const std::filesystem::path stem = named.stem();
  return (stem.extension() == ".ome" ? stem.stem() : stem).string();
}

/// Slides of the formats that this program writes, first those that are probably its own: they are named as OME-TIFF,
/// or as images of another slide are. Others are left out if they have the suffix of a scanner's slides: archives have
/// thousands of these.
std::vector<std::string> possible_own_images(const std::vector<std::string>& slides) {
  std::unordered_map<std::string, std::size_t> names;
  for (const std::string& slide : slides) ++names[bare_name(slide)];
  // NAME, or NAME.OPERATOR.
  const auto is_of_another = [&names](const std::string& slide) {
    const std::string name = bare_name(slide);
    if (names[name] > 1) return true;
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      if (names.contains(name.substr(0, dot))) return true;
    }
    return false;
  };
  const auto ends_in = [](const std::string& slide, std::span<const std::string_view> suffixes) {
    return std::ranges::any_of(suffixes, [&](std::string_view suffix) { return has_suffix(slide, suffix); });
  };
  constexpr std::array<std::string_view, 3> suffixes = {".tif", ".tiff", ".dcm"};
  constexpr std::array<std::string_view, 2> of_scanners = {".svs", ".btf"};
  constexpr std::array<std::string_view, 4> of_ome = {".ome.tif", ".ome.tiff", ".ome.svs", ".ome.btf"};
  std::vector<std::string> probable;
  std::vector<std::string> others;
  for (const std::string& slide : slides) {
    const bool may_be_other = ends_in(slide, suffixes);
    if (!may_be_other && !ends_in(slide, of_scanners)) continue;
    if (ends_in(slide, of_ome) || is_of_another(slide)) {
      probable.push_back(slide);
    } else if (may_be_other) {
      others.push_back(slide);
    }
  }
  probable.insert(probable.end(), others.begin(), others.end());
  return probable;
}

/// A slide and its conversion would both count.
void warn_of_own_images(ExpandedInputs& inputs) {
  constexpr std::size_t most_looked_at = 1000;
  std::size_t looked = 0;
  std::size_t own = 0;
  std::string first;
  for (const std::string& slide : possible_own_images(inputs.slides)) {
    if (looked++ == most_looked_at) break;
    if (!is_own_image(slide)) continue;
    if (own++ == 0) first = slide;
  }
  // Where all are such images, none is there beside what it was made of.
  if (own == 0 || own == inputs.slides.size()) return;
  const bool is_one = own == 1;
  inputs.warnings.push_back(
      (looked > most_looked_at ? "at least " : "") + std::to_string(own) + " of " +
      std::to_string(inputs.slides.size()) + " slides " + (is_one ? "is an image" : "are images") +
      " that slidestream wrote, perhaps of others of these slides, which then count twice: " + one_line(first) +
      (is_one ? "" : " is the first"));
}

bool slide_exists(const std::string& slide) {
  std::error_code code;
  // What can't be asked is for the opening to say.
  return std::filesystem::exists(std::filesystem::status(slide, code)) || code != std::errc::no_such_file_or_directory;
}

/// One slide that isn't there fails. Where none is, the inputs are wrong, or a disk isn't mounted.
void refuse_absent(const std::vector<std::string>& inputs, const std::vector<std::string>& slides) {
  if (std::ranges::any_of(slides, slide_exists)) return;
  if (inputs.size() > 1 && slides.size() == 1) {
    throw ConfigError(one_line(slides.front()) + ": " +
                      std::make_error_code(std::errc::no_such_file_or_directory).message() +
                      "; the inputs have no other slide");
  }
  const std::string named = inputs.front() == "-" ? "standard input" : one_line(inputs.front());
  throw ConfigError(named + (inputs.size() > 1 ? " and the other inputs: " : ": ") +
                    (slides.size() == 1
                         ? "its slide isn't there: "
                         : "none of the " + std::to_string(slides.size()) + " slides is there; the first is ") +
                    one_line(slides.front()));
}

}  // namespace

ExpandedInputs inputs_of_run(const Config& config, bool to_folder) {
  ExpandedInputs inputs =
      to_folder ? expand_inputs(config.input.slides, config.output.dir) : expand_inputs(config.input.slides);
  leave_out_partial_images(inputs);
  if (to_folder) warn_of_own_images(inputs);
  for (const std::string& warning : inputs.warnings) spdlog::warn("{}", warning);
  if (inputs.slides.empty()) {
    throw ConfigError("no slide in " + config.input.slides.front() +
                      (config.input.slides.size() > 1 ? " and the other inputs" : ""));
  }
  refuse_absent(config.input.slides, inputs.slides);
  return inputs;
}

}  // namespace slidestream::cli
