#pragma once

#include <cstdint>

/// \file
/// What a pixel that stands for an area of an image becomes: one source for the host and for devices.

#if defined(__CUDACC__)
#define SLIDESTREAM_AREA __host__ __device__
#else
#define SLIDESTREAM_AREA
#endif

namespace slidestream {

/// Areas of one size: squares with a side of `factor` / 65,536 pixels, 65,537 to 256 x 65,536.
struct AreaMean {
  std::uint64_t area;  ///< what the weights of an area's pixels add up to: factor^2, at most 2^48
  double inverse;      ///< 1 / (2 area), rounded

  static AreaMean of(std::int64_t factor) noexcept {
    const auto area = static_cast<std::uint64_t>(factor) * static_cast<std::uint64_t>(factor);
    return {area, 0.5 / static_cast<double>(area)};
  }

  /// The mean, rounded half up, from the sum of weights times values: floor((2 sum + area) / (2 area)).
  SLIDESTREAM_AREA std::uint8_t mean(std::uint64_t sum) const noexcept {
    // A product that is one off at most, put right: a division of such numbers takes far longer.
    const std::uint64_t twice = 2 * sum + area;
    auto mean = static_cast<std::uint64_t>(static_cast<double>(twice) * inverse);
    mean -= mean * 2 * area > twice ? 1 : 0;
    mean += (mean + 1) * 2 * area <= twice ? 1 : 0;
    return static_cast<std::uint8_t>(mean);
  }
};

}  // namespace slidestream
