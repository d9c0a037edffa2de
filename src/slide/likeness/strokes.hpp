#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "slide/likeness/level_picture.hpp"

// Strokes as small type has, and the glass around them, in blocks of a picture.

namespace slidestream {

inline constexpr std::int64_t stroke_block = 8;  ///< pixels along a side
inline constexpr std::int64_t stroke_reach = 8;  ///< to both sides of a stroke
inline constexpr int least_type_stroke = 24;     ///< of 255

/// In red, green and blue: by how much the third pixel of a block stands out as a stroke, whose sides have one colour,
/// from both sides. Two pixels stand out more. Sides outside the picture don't count. 0: less than `least_type_stroke`
std::array<int, 3> stroke_strengths(const RgbPicture& picture, std::int64_t left, std::int64_t top);

/// The colour that half of the pixels around a block have, if it is as little coloured as glass. \return its green
std::optional<int> glass_around(const RgbPicture& picture, std::int64_t left, std::int64_t top);

/// What red and blue of glass differ from green by, at most.
inline constexpr int most_glass_colour = 40;

/// What pixels have in one channel.
struct ChannelRange {
  void add(const ChannelRange& other) noexcept {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
  }
  int size() const noexcept { return most - least; }

  int least = 255;
  int most = 0;
};

using ColourRange = std::array<ChannelRange, 3>;

/// Of a rectangle, or of its first rows in which all three channels differ by `enough`.
ColourRange range_within(const RgbPicture& picture, std::int64_t left, std::int64_t top, std::int64_t right,
                         std::int64_t bottom, int enough);

/// Which blocks of a picture have pixels that differ, also from those of the blocks beside them, as much as strokes.
class BlockContrast {
 public:
  explicit BlockContrast(const RgbPicture& picture);

  bool has_any(std::int64_t column, std::int64_t row) const;

 private:
  std::int64_t columns_;
  std::int64_t rows_;
  std::vector<ColourRange> ranges_;
};

}  // namespace slidestream
