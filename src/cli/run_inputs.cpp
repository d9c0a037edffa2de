#include "cli/run_inputs.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <slidestream/error.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/tiff_description.hpp"
#include "config/suggest.hpp"
#include "inputs/inputs.hpp"

namespace slidestream::cli {

namespace {

/// Of an image that isn't whole, white tiles stand for those that aren't there yet.
void leave_out_partial_images(ExpandedInputs& inputs) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < inputs.slides.size(); ++i) {
    const std::string name = std::filesystem::path(inputs.canonical[i]).filename().string();
    if (name.ends_with(".partial.ome.tif") || name.ends_with(".partial.ome.tiff")) continue;
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
                            " named .partial.ome.tif among the inputs: not whole, and left out");
}

/// Names of images that this program makes of slides, and that folders give as slides.
bool may_be_own_image(const std::string& slide) { return slide.ends_with(".ome.tif") || slide.ends_with(".ome.tiff"); }

/// A slide and its conversion would both count.
void warn_of_own_images(ExpandedInputs& inputs) {
  constexpr std::size_t most_looked_at = 1000;
  std::size_t looked = 0;
  std::size_t own = 0;
  std::string first;
  for (const std::string& slide : inputs.slides) {
    if (!may_be_own_image(slide)) continue;
    if (looked++ == most_looked_at) break;
    if (tiff_description(slide).find("Creator=\"slidestream ") == std::string::npos) continue;
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
