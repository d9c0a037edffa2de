#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "cuda/pyramid/band_reducer.hpp"
#include "support/plain_pyramid.hpp"

/// \file
/// Random images and bands for those who make levels of them.

namespace slidestream::test {

struct PyramidCase {
  WholeImage image;
  PyramidLayout layout;
  std::int64_t most_rows;
  std::vector<std::int64_t> bands;  ///< their heights
};

inline PyramidCase random_pyramid_case(std::mt19937& random, std::int64_t most_side) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  const Size size{1 + below(most_side), 1 + below(most_side)};
  const PixelFormat format = below(2) == 0 ? luminance_format : rgb_format;
  const PyramidLayout layout(size, 16, static_cast<int>(below(9)));
  PyramidCase made{noise_image(size, format, random), layout, 1 + below(2 * size.height), {}};
  for (std::int64_t y = 0; y < size.height; y += made.bands.back()) {
    made.bands.push_back(std::min(size.height - y, 1 + below(made.most_rows)));
  }
  return made;
}

}  // namespace slidestream::test
