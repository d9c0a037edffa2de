#include "slide/pixel_size.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace slidestream {

bool set_pixel_size(SlideInfo& info, const std::optional<double>& x, const std::optional<double>& y,
                    std::string_view place) {
  constexpr double rounding = 1e-6;
  constexpr double most_apart = 0.01;
  constexpr double least_of_no_pixel = 100.0;
  if (x && y && std::max(*x, *y) >= least_of_no_pixel * std::min(*x, *y)) {
    std::ostringstream text;
    text << place << " says " << *x << " x " << *y
         << " micrometres per pixel, as if a unit were missing: both are passed over; input.mpp sets the size";
    info.warnings.push_back(text.str());
    return false;
  }
  const auto are_apart = [&](double share) { return x && y && std::abs(*x - *y) > share * std::min(*x, *y); };
  info.mpp = x;
  info.said_mpp_y = are_apart(rounding) ? y : std::nullopt;
  info.mpp_y = are_apart(most_apart) ? y : std::nullopt;
  return true;
}

}  // namespace slidestream
