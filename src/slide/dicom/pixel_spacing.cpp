#include "slide/dicom/pixel_spacing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "slide/dicom/instance.hpp"
#include "slide/dicom/level_sizes.hpp"
#include "slide/level_coding.hpp"
#include "slide/level_factor.hpp"

namespace slidestream::dicom {

namespace {

constexpr const char* spacing_name = "PixelSpacing (0028,0030)";

/// \param images  the largest first
/// \param is_own  the largest image says the size, so that nobody needs those of smaller levels
void warn_of_unsound_spacing(const std::vector<const Instance*>& images, bool is_own, SlideInfo& info) {
  const auto is_unsound = [](const Instance* image) { return image->has_unsound_spacing; };
  const bool is_of_largest = is_unsound(images.front());
  if (!is_of_largest && (is_own || std::ranges::none_of(images, is_unsound))) return;
  info.warnings.push_back(std::string(spacing_name) + (is_of_largest ? "" : " of a smaller level") +
                          " isn't two numbers above 0: it is passed over");
}

/// Adds lines about what frames, and the other parts of a concatenation, say beside the size that counts.
void compare_with_parts(const SaidPixelSize& said, const std::vector<OpenFile*>& image, SlideInfo& info) {
  const auto size = [](double mm_x, double mm_y) { return SaidPixelSize{mm_x * 1000.0, mm_y * 1000.0}; };
  const auto own =
      std::ranges::find_if(image, [](const OpenFile* part) { return part->instance.own_spacing.has_value(); });
  if (own != image.end()) {
    const Instance& part = (*own)->instance;
    compare_pixel_sizes(info, size(*part.mm_x, *part.mm_y), std::string(spacing_name) + " of all frames",
                        size(part.own_spacing->mm_x, part.own_spacing->mm_y),
                        "frame " + std::to_string(part.own_spacing->frame + 1));
  }
  for (const OpenFile* file : image) {
    const Instance& part = file->instance;
    if (!part.mm_x || !are_contrary(said, size(*part.mm_x, *part.mm_y))) continue;
    compare_pixel_sizes(info, said, std::string(spacing_name) + " of part 1", size(*part.mm_x, *part.mm_y),
                        "that of part " + std::to_string(part.part));
    return;
  }
}

}  // namespace

SaidPixelSize read_pixel_size(const std::vector<std::vector<OpenFile*>>& images, SlideInfo& info) {
  const std::vector<OpenFile*>& image = images.front();
  const Instance& instance = image.front()->instance;
  std::vector<const Instance*> firsts;
  firsts.reserve(images.size());
  for (const std::vector<OpenFile*>& each : images) firsts.push_back(&each.front()->instance);
  info.magnification = instance.magnification;
  if (std::ranges::any_of(image, [](const OpenFile* part) { return part->instance.spacings_differ; })) {
    info.warnings.push_back(std::string(spacing_name) + " differs between its frames: it is passed over");
    return {};
  }
  // Pixels of a scanner are about 10 micrometres divided by the power. Without one it may be a picture of the glass.
  constexpr double most_by_power = 400.0, most_of_glass = 100.0;
  const double by_power = instance.magnification ? most_by_power / *instance.magnification : most_of_glass;
  const double most = std::clamp(by_power, most_scanned_pixel_size, most_of_glass);
  const auto size = [](const std::optional<double>& mm, std::int64_t pixels) {
    return mm && pixels > 0 ? std::optional(*mm * 1000.0 / static_cast<double>(pixels)) : std::nullopt;
  };
  SaidPixelSize said{size(instance.mm_x, 1), size(instance.mm_y, 1)};
  warn_of_unsound_spacing(firsts, said.x.has_value(), info);
  const bool is_repeated = repeat_spacing(firsts);
  const bool is_own = said.x && !is_repeated;
  if (is_repeated) {
    said = {};
    info.warnings.push_back(std::string(spacing_name) + " is the same in levels of different sizes: it is passed over");
  } else if (!is_own) {
    said = size_by_levels(firsts, info);
  }
  const std::string place = is_own ? spacing_name : std::string(spacing_name) + " of smaller levels";
  if (!are_far_apart(said)) {
    // Both or none: one line is enough.
    said.x = said_pixel_size(said.x, place, info, most);
    said.y = said.x ? said_pixel_size(said.y, place, info, most) : std::nullopt;
    if (!said.y) said.x.reset();
  }
  if (instance.has_unsound_volume && (are_far_apart(said) || (!said.x && !said.y))) {
    info.warnings.emplace_back(
        "ImagedVolumeWidth (0048,0001) or ImagedVolumeHeight (0048,0002) can't be read as a number above 0: it is "
        "passed over");
  }
  const SaidPixelSize volume =
      said_pixel_sizes({size(instance.volume_mm_x, instance.width), size(instance.volume_mm_y, instance.height)},
                       "a pixel's part of ImagedVolumeWidth (0048,0001)",
                       "a pixel's part of ImagedVolumeHeight (0048,0002)", info, most);
  settle_pixel_size(info, said, place, volume, "the imaged volume (0048,0001)");
  if (!said.x && info.mpp) compare_volumes(firsts, info);
  if (!info.mpp && instance.has_misplaced_spacing) {
    info.warnings.push_back(std::string(spacing_name) +
                            " stands outside of the functional groups, where it says nothing: it is passed over");
  }
  if (!is_own || !said.x || are_far_apart(said)) return {};
  compare_with_parts(said, image, info);
  return said;
}

bool compare_spacing(Slide::Impl& slide, const SaidPixelSize& largest, const Instance& level) {
  if (!largest.x || !largest.y || !level.mm_x || !level.mm_y) return false;
  const std::vector<Level>& levels = slide.info.levels;
  const Level& own = levels.back();
  LevelCoding& coding = slide.codings.back();
  const auto factor = static_cast<double>(coding.said_factor);
  const bool is_said_by_size = level_factor(levels.front().width, own.width) == factor &&
                               level_factor(levels.front().height, own.height) == factor;
  if (is_said_by_size) coding.said_factor = 0;
  const auto by_level =
      contrary_size_by_level(largest, levels.front(), {*level.mm_x * 1000.0, *level.mm_y * 1000.0}, levels.back());
  if (!by_level) return false;
  const std::size_t lines = slide.info.warnings.size();
  const bool is_told = coding.said_factor == 0;
  compare_pixel_sizes(slide.info, largest, "PixelSpacing (0028,0030) of the largest image", *by_level,
                      "that of the image of " + std::to_string(level.width) + " x " + std::to_string(level.height) +
                          " pixels gives it");
  // Padding of any size may explain it, which pixels tell.
  if (is_told || slide.info.warnings.size() == lines) return is_told;
  coding.contradiction = std::move(slide.info.warnings.back());
  slide.info.warnings.pop_back();
  return false;
}

}  // namespace slidestream::dicom
