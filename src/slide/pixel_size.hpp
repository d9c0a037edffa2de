#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <slidestream/slide.hpp>

namespace slidestream {

/// Sets `mpp`, and `mpp_y` if both sizes are known and differ by more than 1 %. Micrometres per pixel.
inline void set_pixel_size(SlideInfo& info, const std::optional<double>& x, const std::optional<double>& y) {
  constexpr double most_apart = 0.01;
  info.mpp = x;
  info.mpp_y.reset();
  if (x && y && std::abs(*x - *y) > most_apart * std::min(*x, *y)) info.mpp_y = y;
}

}  // namespace slidestream
