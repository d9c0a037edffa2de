#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "colour/colour_steps.hpp"

namespace slidestream {

/// Converts 8-bit RGB of a profile's colours to sRGB: relative colorimetric, without black point compensation. All in
/// float32 without fused multiply-add, so that every processor gives the same bits. Immutable, so thread-safe.
class ColourConversion {
 public:
  /// \throws Error as `read_colour_steps`
  explicit ColourConversion(std::span<const std::byte> profile);

  /// Converts interleaved pixels in place.
  void apply(std::uint8_t* rgb, std::int64_t pixels) const noexcept;

  const ColourSteps& steps() const noexcept { return steps_; }

 private:
  ColourSteps steps_;
  ColourMatrix last_;       ///< the only matrix of a profile that has nothing else
  bool is_matrix_ = false;  ///< it has curves and a matrix, and nothing else
};

/// The definition: one pixel, step by step.
void convert_colour(const ColourSteps& steps, std::uint8_t* rgb) noexcept;

}  // namespace slidestream
