#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "image/mirror.hpp"
#include "support/pixel_images.hpp"

/// \file
/// Operators over whole images as their definitions read: a pixel at a time, in plain arithmetic. What kernels and the
/// pipeline are compared with.

namespace slidestream::test {

/// rint(65536 g) from the centre outwards, where the centre takes what is missing to 65536.
inline std::vector<std::int64_t> plain_gaussian_weights(int radius, double sigma) {
  double total = 0.0;
  for (int i = -radius; i <= radius; ++i) total += std::exp(-0.5 * (i / sigma) * (i / sigma));
  std::vector<std::int64_t> weights{65536};
  for (int i = 1; i <= radius; ++i) {
    const double weight = std::exp(-0.5 * (i / sigma) * (i / sigma)) / total;
    weights.push_back(static_cast<std::int64_t>(std::nearbyint(65536.0 * weight)));
    weights[0] -= 2 * weights.back();
  }
  return weights;
}

/// Both directions in 64 bits, rounded once.
inline PixelImage plain_gaussian(const PixelImage& image, int radius, double sigma) {
  const std::vector<std::int64_t> weights = plain_gaussian_weights(radius, sigma);
  const std::int64_t width = image.image.width;
  const std::int64_t height = image.image.height;
  const int channels = image.format.channels;
  // Which sample stands for each one of an axis and beyond its ends.
  const auto mirrored = [radius](std::int64_t size) {
    std::vector<std::int64_t> places;
    for (std::int64_t i = -radius; i < size + radius; ++i) places.push_back(mirror_reflect(i, size));
    return places;
  };
  const std::vector<std::int64_t> columns = mirrored(width);
  const std::vector<std::int64_t> rows = mirrored(height);
  std::vector<std::int64_t> down(static_cast<std::size_t>(width * height * channels));
  const auto sum_at = [&](std::int64_t x, std::int64_t y, int c) -> std::int64_t& {
    return down[static_cast<std::size_t>((y * width + x) * channels + c)];
  };
  PixelImage made(image.image, image.format);
  for (const bool across : {false, true}) {
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        for (int c = 0; c < channels; ++c) {
          std::int64_t sum = 0;
          for (int i = -radius; i <= radius; ++i) {
            const std::int64_t weight = weights[static_cast<std::size_t>(std::abs(i))];
            sum += weight * (across ? sum_at(columns[static_cast<std::size_t>(x + i + radius)], y, c)
                                    : image.at(x, rows[static_cast<std::size_t>(y + i + radius)], c));
          }
          if (!across) sum_at(x, y, c) = sum;
          if (across) made.set(x, y, c, static_cast<std::uint8_t>((sum + (std::int64_t{1} << 31)) >> 32));
        }
      }
    }
  }
  return made;
}

/// Gx^2 + Gy^2 of the integer Sobel kernels.
inline int plain_sobel_square(const PixelImage& luminance, std::int64_t x, std::int64_t y) {
  const int smooth[3] = {1, 2, 1};
  int gx = 0;
  int gy = 0;
  for (int i = -1; i <= 1; ++i) {
    for (int j = -1; j <= 1; ++j) {
      const int value =
          luminance.at(mirror_symmetric(x + i, luminance.image.width), mirror_symmetric(y + j, luminance.image.height));
      gx += i * smooth[j + 1] * value;
      gy += j * smooth[i + 1] * value;
    }
  }
  return gx * gx + gy * gy;
}

/// The number of k >= 1 with 8 (2k - 1)^2 <= s.
inline std::uint8_t plain_sobel_count(int s) {
  int k = 0;
  while (8 * (2 * k + 1) * (2 * k + 1) <= s) ++k;
  return static_cast<std::uint8_t>(k);
}

/// sqrt(s / 32). Float64 has more than twice float32's digits, so that rounding twice is as rounding once.
inline float plain_sobel_root(int s) { return static_cast<float>(std::sqrt(static_cast<double>(s) / 32.0)); }

/// One channel of uint8 or float32.
inline PixelImage plain_sobel(const PixelImage& luminance, SampleType output) {
  PixelImage made(luminance.image, {output, 1});
  for (std::int64_t y = 0; y < luminance.image.height; ++y) {
    for (std::int64_t x = 0; x < luminance.image.width; ++x) {
      const int s = plain_sobel_square(luminance, x, y);
      if (output == SampleType::uint8) made.set(x, y, 0, plain_sobel_count(s));
      if (output == SampleType::float32) made.set(x, y, 0, plain_sobel_root(s));
    }
  }
  return made;
}

/// Stain normalisation by a matrix between log spaces in 1/65536, without tables. White points are the slide's and the
/// reference's.
inline PixelImage plain_stain(const PixelImage& image, const std::array<std::array<std::int32_t, 3>, 3>& matrix,
                              const std::array<std::uint8_t, 3>& from, const std::array<std::uint8_t, 3>& to) {
  PixelImage made(image.image, rgb_format);
  for (std::int64_t y = 0; y < image.image.height; ++y) {
    for (std::int64_t x = 0; x < image.image.width; ++x) {
      std::array<std::int64_t, 3> logs{};
      for (std::size_t j = 0; j < 3; ++j) {
        const double v = std::min<int>(image.at(x, y, static_cast<int>(j)), from[j]);
        logs[j] = static_cast<std::int64_t>(std::nearbyint(65536.0 * std::log((v + 1) / (from[j] + 1.0))));
      }
      for (std::size_t c = 0; c < 3; ++c) {
        std::int64_t t = 0;
        for (std::size_t j = 0; j < 3; ++j) t += matrix[c][j] * logs[j];
        const std::int64_t i = ((std::int64_t{1} << 20) - t) >> 21;
        const double value = std::floor((to[c] + 1.0) * std::exp(-static_cast<double>(i) / 2048.0) - 0.5);
        made.set(x, y, static_cast<int>(c), static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
      }
    }
  }
  return made;
}

}  // namespace slidestream::test
