#include "image/mask.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace slidestream {
namespace {

/// The first pixel of an axis whose centre is at `edge` (level 0 pixels) or beyond; `size` where there is none.
std::int64_t first_centre(double edge, double scale, std::int64_t size) noexcept {
  return static_cast<std::int64_t>(std::clamp(std::ceil(edge / scale - 0.5), 0.0, static_cast<double>(size)));
}

std::int64_t pixel_at(double place, double scale, std::int64_t size) noexcept {
  return static_cast<std::int64_t>(std::clamp(std::floor(place / scale), 0.0, static_cast<double>(size - 1)));
}

}  // namespace

Mask empty_mask(Size size, GridScale scale, Size level0) {
  return {size, scale, level0, std::vector<std::uint8_t>(static_cast<std::size_t>(size.width * size.height))};
}

PackedMask::PackedMask(const Mask& mask)
    : size_(mask.size), scale_(mask.scale), level0_(mask.level0), pixels_(mask.pixels.begin(), mask.pixels.end()) {}

Mask PackedMask::unpack() const {
  return {size_, scale_, level0_, std::vector<std::uint8_t>(pixels_.begin(), pixels_.end())};
}

double tissue_share(const Mask& mask) {
  if (mask.pixels.empty()) return 0.0;
  const std::int64_t tissue = std::accumulate(mask.pixels.begin(), mask.pixels.end(), std::int64_t{0});
  return static_cast<double>(tissue) / static_cast<double>(mask.pixels.size());
}

MaskTable::MaskTable(const Mask& mask)
    : size_(mask.size),
      scale_(mask.scale),
      sums_(static_cast<std::size_t>((mask.size.width + 1) * (mask.size.height + 1))) {
  const std::size_t pitch = static_cast<std::size_t>(size_.width) + 1;
  for (std::int64_t y = 0; y < size_.height; ++y) {
    const std::uint32_t* above = sums_.data() + static_cast<std::size_t>(y) * pitch;
    std::uint32_t* here = sums_.data() + static_cast<std::size_t>(y + 1) * pitch;
    std::uint32_t in_row = 0;
    std::size_t x = 0;
    for (const std::uint8_t tissue : mask.row(y)) {
      in_row += tissue;
      ++x;
      here[x] = above[x] + in_row;
    }
  }
}

std::int64_t MaskTable::tissue_in(std::int64_t left, std::int64_t top, std::int64_t right,
                                  std::int64_t bottom) const noexcept {
  const auto sum = [&](std::int64_t x, std::int64_t y) {
    return std::int64_t{sums_[static_cast<std::size_t>(y * (size_.width + 1) + x)]};
  };
  return sum(right, bottom) - sum(left, bottom) - sum(right, top) + sum(left, top);
}

MaskTable::Count MaskTable::count(const Rect& window, const GridScale& level) const noexcept {
  if (size_.width < 1 || size_.height < 1) return {};
  const double left = static_cast<double>(window.x) * level.x;
  const double top = static_cast<double>(window.y) * level.y;
  const double right = static_cast<double>(window.right()) * level.x;
  const double bottom = static_cast<double>(window.bottom()) * level.y;
  const std::int64_t x0 = first_centre(left, scale_.x, size_.width);
  const std::int64_t x1 = first_centre(right, scale_.x, size_.width);
  const std::int64_t y0 = first_centre(top, scale_.y, size_.height);
  const std::int64_t y1 = first_centre(bottom, scale_.y, size_.height);
  if (x0 >= x1 || y0 >= y1) {
    const std::int64_t x = pixel_at((left + right) / 2.0, scale_.x, size_.width);
    const std::int64_t y = pixel_at((top + bottom) / 2.0, scale_.y, size_.height);
    return {tissue_in(x, y, x + 1, y + 1), 1};
  }
  return {tissue_in(x0, y0, x1, y1), (x1 - x0) * (y1 - y0)};
}

bool MaskTable::is_tissue(const Rect& window, const GridScale& level, double share) const noexcept {
  const Count found = count(window, level);
  return found.tissue > 0 && static_cast<double>(found.tissue) >= share * static_cast<double>(found.all);
}

double MaskTable::share_of(const Rect& window, const GridScale& level) const noexcept {
  const Count found = count(window, level);
  return static_cast<double>(found.tissue) / static_cast<double>(found.all);
}

}  // namespace slidestream
