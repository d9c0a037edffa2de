#include "slide/pixel_size.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>

namespace slidestream {
namespace {

bool are_apart(const std::optional<double>& a, const std::optional<double>& b, double share) {
  return a && b && std::abs(*a - *b) > share * std::min(*a, *b);
}

std::string shown_size(const std::optional<double>& size) {
  std::ostringstream text;
  if (size) text << *size;
  return text.str();
}

/// One number where both look alike.
std::string sizes_text(const SaidPixelSize& said) {
  std::string x = shown_size(said.x);
  std::string y = shown_size(said.y);
  if (x.empty() || x == y) return y;
  return y.empty() ? x : x + " x " + y;
}

/// \returns whether they can be a pixel's
bool set_pixel_size(SlideInfo& info, const std::optional<double>& x, const std::optional<double>& y,
                    std::string_view place) {
  constexpr double rounding = 1e-6;
  constexpr double most_apart = 0.01;
  if (are_far_apart({x, y})) {
    info.warnings.push_back(
        std::string(place) + " says " + sizes_text({x, y}) +
        " micrometres per pixel, as if a unit were missing: both are passed over; input.mpp sets the "
        "size");
    return false;
  }
  info.mpp = x;
  info.said_mpp_y = are_apart(x, y, rounding) ? y : std::nullopt;
  info.mpp_y = are_apart(x, y, most_apart) ? y : std::nullopt;
  return true;
}

}  // namespace

bool are_far_apart(const SaidPixelSize& said) {
  constexpr double least_of_no_pixel = 100.0;
  return said.x && said.y && *said.x != *said.y &&
         std::max(*said.x, *said.y) >= least_of_no_pixel * std::min(*said.x, *said.y);
}

bool are_contrary(const SaidPixelSize& said, const SaidPixelSize& other) {
  constexpr double most_contradiction = 0.02;
  return are_apart(said.x, other.x, most_contradiction) || are_apart(said.y, other.y, most_contradiction);
}

void compare_pixel_sizes(SlideInfo& info, const SaidPixelSize& said, std::string_view place, const SaidPixelSize& other,
                         std::string_view other_place) {
  if (!are_contrary(said, other)) return;
  info.warnings.push_back(std::string(place) + " says " + sizes_text(said) + " micrometres per pixel, and " +
                          std::string(other_place) + " " + sizes_text(other) + ": " + std::string(place) + " counts");
}

std::optional<SaidPixelSize> contrary_size_by_level(const SaidPixelSize& said, const Level& largest,
                                                    const SaidPixelSize& own, const Level& level) {
  constexpr double most_rounded = 2.0;  // pixels
  const auto is_off = [&level](const std::optional<double>& counts, std::int64_t of_largest,
                               const std::optional<double>& size, std::int64_t pixels, std::int64_t tile) {
    if (!counts || !size) return false;
    const double surplus = static_cast<double>(pixels) - *counts * static_cast<double>(of_largest) / *size;
    return surplus < -most_rounded || surplus >= (level.tiled ? static_cast<double>(tile) : most_rounded);
  };
  if (!is_off(said.x, largest.width, own.x, level.width, level.tile_width) &&
      !is_off(said.y, largest.height, own.y, level.height, level.tile_height)) {
    return std::nullopt;
  }
  const auto scaled = [](const std::optional<double>& size, std::int64_t pixels, std::int64_t of_largest) {
    return size ? std::optional(*size * static_cast<double>(pixels) / static_cast<double>(of_largest)) : std::nullopt;
  };
  const SaidPixelSize by_level{scaled(own.x, level.width, largest.width), scaled(own.y, level.height, largest.height)};
  return are_contrary(said, by_level) ? std::optional(by_level) : std::nullopt;
}

SaidPixelSize said_pixel_sizes(const SaidPixelSize& said, std::string_view what_x, std::string_view what_y,
                               SlideInfo& info, double most) {
  if (are_far_apart(said)) return said;
  const std::optional<double> x = said_pixel_size(said.x, what_x, info, most);
  return {x, said_pixel_size(said.y, what_y, info, most)};
}

void settle_pixel_size(SlideInfo& info, const SaidPixelSize& said, std::string_view place, const SaidPixelSize& other,
                       std::string_view other_place) {
  const auto take = [&](const SaidPixelSize& size, std::string_view from) {
    if (size.x.has_value() != size.y.has_value()) {
      info.warnings.push_back(std::string(from) + " says the size of pixels only " + (size.x ? "across" : "down") +
                              ", " + sizes_text(size) + " micrometres: they are taken for square");
    }
    return set_pixel_size(info, size.x ? size.x : size.y, size.x ? size.y : std::nullopt, from);
  };
  if ((!said.x && !said.y) || !take(said, place)) {
    take(other, other_place);
    return;
  }
  compare_pixel_sizes(info, said, place, other, other_place);
}

}  // namespace slidestream
