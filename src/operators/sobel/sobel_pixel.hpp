#pragma once

#include <cstdint>

/// \file
/// What a pixel's Sobel gradients are, in integers: for kernels on the host and on a GPU. Unsigned words hold one pixel
/// (`ones` is 1), or two in halves of 16 bits (`two_pixels`).

namespace slidestream::operators {

inline constexpr std::uint32_t two_pixels = 0x00010001;

/// What is added to gradients, which are -1020 to 1020, so that words hold them.
inline constexpr std::uint32_t gradient_bias = 1024;

/// Three samples, one below the other, as the two kernels weigh them.
struct SobelColumn {
  std::uint32_t sum;         ///< 1 2 1
  std::uint32_t difference;  ///< the lower less the upper, and a quarter of the bias
};

struct SobelGradients {
  std::uint32_t x;  ///< Gx + gradient_bias
  std::uint32_t y;
};

constexpr SobelColumn sobel_column(std::uint32_t up, std::uint32_t middle, std::uint32_t down,
                                   std::uint32_t ones) noexcept {
  return {up + 2 * middle + down, down + gradient_bias / 4 * ones - up};
}

/// Of the pixels whose column is `middle`.
constexpr SobelGradients sobel_gradients(const SobelColumn& left, const SobelColumn& middle, const SobelColumn& right,
                                         std::uint32_t ones) noexcept {
  return {right.sum + gradient_bias * ones - left.sum, left.difference + 2 * middle.difference + right.difference};
}

/// s = Gx^2 + Gy^2 of one pixel.
constexpr std::int32_t sobel_square(const SobelGradients& g) noexcept {
  const auto x = static_cast<std::int32_t>(g.x - gradient_bias);
  const auto y = static_cast<std::int32_t>(g.y - gradient_bias);
  return x * x + y * y;
}

/// The steepness is the root of s times this, which is exact.
inline constexpr float sobel_scale = 0.03125F;

}  // namespace slidestream::operators
