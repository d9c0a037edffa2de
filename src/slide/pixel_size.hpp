#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <slidestream/slide.hpp>

namespace slidestream {

/// Sets `mpp`. If both sizes are known, sets `said_mpp_y` where they differ, and `mpp_y` where they differ by more than
/// 1 %. Micrometres per pixel.
inline void set_pixel_size(SlideInfo& info, const std::optional<double>& x, const std::optional<double>& y) {
  constexpr double rounding = 1e-6;
  constexpr double most_apart = 0.01;
  const auto are_apart = [&](double share) { return x && y && std::abs(*x - *y) > share * std::min(*x, *y); };
  info.mpp = x;
  info.said_mpp_y = are_apart(rounding) ? y : std::nullopt;
  info.mpp_y = are_apart(most_apart) ? y : std::nullopt;
}

}  // namespace slidestream
