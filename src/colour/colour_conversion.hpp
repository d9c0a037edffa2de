#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "colour/colour_lookup.hpp"
#include "colour/colour_steps.hpp"

namespace slidestream {

/// Converts 8-bit RGB of a profile's colours to sRGB: relative colorimetric, without black point compensation. In
/// float32 without fused multiply-add, and in integers within a grid, so that every processor gives the same bits.
/// Immutable, so thread-safe.
class ColourConversion {
 public:
  /// \throws Error as `read_colour_steps`
  explicit ColourConversion(std::span<const std::byte> profile);

  /// Converts interleaved pixels in place.
  void apply(std::uint8_t* rgb, std::int64_t pixels) const noexcept;

  /// Whether colours stay as they are, but for 1 of 255: the profile is sRGB's. Looks at 4,096 colours.
  bool keeps_colours() const noexcept;

  const ColourSteps& steps() const noexcept { return steps_; }
  const ColourLookup& lookup() const noexcept { return lookup_; }

  /// Memory that it takes, in bytes.
  std::uint64_t bytes() const noexcept { return sizeof(*this) + steps_.table_bytes() + lookup_.table_bytes(); }

  /// Whether both convert by the same steps.
  bool operator==(const ColourConversion& other) const { return steps_ == other.steps_; }

 private:
  ColourSteps steps_;
  ColourLookup lookup_;
};

/// The definition: one pixel, step by step.
void convert_colour(const ColourSteps& steps, std::uint8_t* rgb) noexcept;

}  // namespace slidestream
