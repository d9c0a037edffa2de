#include "slide/dicom/level_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "slide/level_factor.hpp"

namespace slidestream::dicom {

namespace {

constexpr double micrometres = 1000.0;  ///< of a millimetre

bool has_pixels(const Instance& image) { return image.width > 0 && image.height > 0; }

bool differ_along(const std::optional<double>& a, const std::optional<double>& b, std::int64_t pixels) {
  constexpr double most_rounded = 2.0;  // pixels
  if (!a || !b || !are_contrary({a, {}}, {b, {}})) return false;
  return std::abs(*a - *b) * static_cast<double>(pixels) > most_rounded * std::min(*a, *b);
}

/// Whether two sizes of the largest image's pixels differ by more than how a level's sides are rounded.
bool differ(const SaidPixelSize& a, const SaidPixelSize& b, const Instance& level) {
  return differ_along(a.x, b.x, level.width) || differ_along(a.y, b.y, level.height);
}

SaidPixelSize size_by_spacing(const Instance& level, const Instance& largest) {
  if (!level.mm_x || !level.mm_y) return {};
  return {*level.mm_x * micrometres / level_factor(largest.width, level.width),
          *level.mm_y * micrometres / level_factor(largest.height, level.height)};
}

SaidPixelSize size_by_volume(const Instance& image, const Instance& largest) {
  const auto along = [](const std::optional<double>& mm, std::int64_t pixels) {
    return mm ? std::optional(*mm * micrometres / static_cast<double>(pixels)) : std::nullopt;
  };
  return {along(image.volume_mm_x, largest.width), along(image.volume_mm_y, largest.height)};
}

}  // namespace

SaidPixelSize size_by_levels(std::span<const Instance* const> images, SlideInfo& info) {
  const Instance& largest = *images.front();
  if (!has_pixels(largest)) return {};
  SaidPixelSize size;
  for (const Instance* level : images.subspan(1)) {
    if (!has_pixels(*level)) continue;
    const SaidPixelSize own = size_by_spacing(*level, largest);
    if (!size.x) size = own;
    if (!differ(size, own, *level)) continue;
    info.warnings.emplace_back("PixelSpacing (0028,0030) of smaller levels differs by their sizes: it is passed over");
    return {};
  }
  return size;
}

bool repeat_spacing(std::span<const Instance* const> images) {
  const Instance& largest = *images.front();
  if (!has_pixels(largest)) return false;
  const SaidPixelSize said = size_by_spacing(largest, largest);
  bool repeat = false;
  for (const Instance* level : images.subspan(1)) {
    if (!has_pixels(*level)) continue;
    if (are_contrary(said, size_by_spacing(*level, *level))) return false;
    repeat = repeat || differ(said, size_by_spacing(*level, largest), *level);
  }
  return repeat;
}

std::int64_t factor_by_spacing(const Instance& larger, const Instance& smaller) {
  constexpr double most_rounded = 1e-3;  // of the factor
  constexpr double largest_factor = 65536.0;
  if (!larger.mm_x || !larger.mm_y || !smaller.mm_x || !smaller.mm_y) return 0;
  const double across = *smaller.mm_x / *larger.mm_x;
  const double down = *smaller.mm_y / *larger.mm_y;
  if (!(across > 1.0 && across < 2.0 * largest_factor)) return 0;
  const double factor = std::exp2(std::round(std::log2(across)));
  const bool is_whole =
      std::abs(across / factor - 1.0) <= most_rounded && std::abs(down / factor - 1.0) <= most_rounded;
  return is_whole && factor >= 2.0 && factor <= largest_factor ? static_cast<std::int64_t>(factor) : 0;
}

void compare_volumes(std::span<const Instance* const> images, SlideInfo& info) {
  const Instance& largest = *images.front();
  if (!has_pixels(largest)) return;
  const SaidPixelSize said = size_by_volume(largest, largest);
  for (const Instance* level : images.subspan(1)) {
    const SaidPixelSize own = size_by_volume(*level, largest);
    if (!differ(said, own, *level)) continue;
    compare_pixel_sizes(info, said, "the imaged volume (0048,0001) of the largest image", own,
                        "that of the image of " + std::to_string(level->width) + " x " + std::to_string(level->height) +
                            " pixels gives it");
    return;
  }
}

}  // namespace slidestream::dicom
