#include "slide/likeness/strokes.hpp"

#include <cstdlib>

namespace slidestream {
namespace {

constexpr int most_side_difference = 6;       ///< of one stroke
constexpr std::size_t least_type_pixels = 3;  ///< of a block
constexpr std::size_t row_samples = 3 * stroke_block;

// Of glass.
constexpr unsigned bin_width = 8;  ///< values of 255
constexpr std::size_t bins = 256 / bin_width;

/// A block and what lies around it, in rows of samples. Zero outside the picture.
class StrokePatch {
 public:
  static constexpr std::size_t lanes = 32;  ///< those of a block's row, and some to fill vectors of 16 bytes

  StrokePatch(const RgbPicture& picture, std::int64_t left, std::int64_t top) {
    const std::int64_t first = std::max<std::int64_t>(0, left - stroke_reach);
    const std::int64_t end = std::min(picture.width, left + stroke_block + stroke_reach);
    for (std::int64_t y = 0; y < side; ++y) {
      const std::int64_t row = top - stroke_reach + y;
      if (row < 0 || row >= picture.height) continue;
      std::copy_n(picture.pixel(first, row), 3 * (end - first),
                  samples_.begin() + y * pitch + 3 * (first - left + stroke_reach));
    }
  }

  /// So many rows and pixels from a row of the block.
  const std::uint8_t* row(std::int64_t y, std::int64_t by_y, std::int64_t by_x) const noexcept {
    return samples_.data() + (y + stroke_reach + by_y) * pitch + 3 * (stroke_reach + by_x);
  }

 private:
  static constexpr std::int64_t side = stroke_block + 2 * stroke_reach;
  static constexpr std::int64_t pitch = 3 * side;

  std::array<std::uint8_t, static_cast<std::size_t>(side* pitch) + lanes> samples_{};
};

using Lanes = std::array<std::uint8_t, StrokePatch::lanes>;

// Of values: `std::min` and `std::max` give references, of which compilers make no vectors.
constexpr std::uint8_t lesser(std::uint8_t a, std::uint8_t b) noexcept { return a < b ? a : b; }
constexpr std::uint8_t greater(std::uint8_t a, std::uint8_t b) noexcept { return a < b ? b : a; }

/// Raises heights of samples to those by which they lie below or above both sides, where these have one colour. Bytes
/// alone, and no branches. \param mask  0: the sample has no such sides, else 255
inline void raise_heights(Lanes& heights, const std::uint8_t* values, const std::uint8_t* before,
                          const std::uint8_t* behind, const Lanes& mask) {
  Lanes raised;
  for (std::size_t i = 0; i < StrokePatch::lanes; ++i) {
    const std::uint8_t value = values[i];
    const std::uint8_t least = lesser(before[i], behind[i]);
    const std::uint8_t most = greater(before[i], behind[i]);
    const auto below = static_cast<std::uint8_t>(greater(least, value) - value);
    const auto above = static_cast<std::uint8_t>(greater(most, value) - most);
    const auto difference = static_cast<std::uint8_t>(most - least);
    const auto is_one_colour = static_cast<std::uint8_t>(difference <= most_side_difference ? 255 : 0);
    raised[i] = static_cast<std::uint8_t>(greater(below, above) & is_one_colour & mask[i]);
  }
  for (std::size_t i = 0; i < StrokePatch::lanes; ++i) heights[i] = greater(heights[i], raised[i]);
}

/// Which pixels of a block's row have both sides within the picture, by how far away they are.
std::array<Lanes, stroke_reach + 1> masks_of_columns(std::int64_t width, std::int64_t left) {
  std::array<Lanes, stroke_reach + 1> masks{};
  for (std::int64_t reach = 2; reach <= stroke_reach; ++reach) {
    const std::int64_t first = std::clamp<std::int64_t>(reach - left, 0, stroke_block);
    const std::int64_t end = std::clamp(width - reach - left, first, stroke_block);
    std::fill_n(masks[static_cast<std::size_t>(reach)].begin() + 3 * first, 3 * (end - first), std::uint8_t{255});
  }
  return masks;
}

/// The value that half of the pixels of a rectangle have in one channel. Every second one is counted, along both axes.
std::optional<int> usual_value(const RgbPicture& picture, const PixelRange& columns, const PixelRange& rows,
                               int channel) {
  std::array<int, bins> counts{};
  for (std::int64_t y = rows.begin; y < rows.end; y += 2) {
    const std::uint8_t* const row = picture.pixel(0, y) + channel;
    for (std::int64_t x = columns.begin; x < columns.end; x += 2) ++counts[row[3 * x] / bin_width];
  }
  int most = 0;
  int value = 0;
  for (std::size_t bin = 0; bin + 1 < bins; ++bin) {
    const int both = counts[bin] + counts[bin + 1];
    if (both <= most) continue;
    most = both;
    value = static_cast<int>((bin + 1) * bin_width);
  }
  const std::int64_t all = ((rows.size() + 1) / 2) * ((columns.size() + 1) / 2);
  return 2 * most >= all ? std::optional(value) : std::nullopt;
}

/// What bytes side by side have, of whole pixels: compilers make vectors of them.
template <std::size_t size>
struct ByteRanges {
  ByteRanges() { least.fill(255); }

  void add(const std::uint8_t* bytes) {
    for (std::size_t i = 0; i < size; ++i) {
      least[i] = lesser(least[i], bytes[i]);
      most[i] = greater(most[i], bytes[i]);
    }
  }

  void add_to(ColourRange& range) const {
    for (std::size_t i = 0; i < size; ++i) range[i % 3].add({least[i], most[i]});
  }

  std::array<std::uint8_t, size> least;
  std::array<std::uint8_t, size> most{};
};

void add_rows(ColourRange& range, const RgbPicture& picture, std::int64_t left, std::int64_t top, std::int64_t right,
              std::int64_t bottom) {
  constexpr std::int64_t step = 16;  // pixels
  ByteRanges<3 * step> many;
  ByteRanges<3> few;
  std::int64_t x = left;
  for (; x + step <= right; x += step) {
    for (std::int64_t y = top; y < bottom; ++y) many.add(picture.pixel(x, y));
  }
  for (; x < right; ++x) {
    for (std::int64_t y = top; y < bottom; ++y) few.add(picture.pixel(x, y));
  }
  if (right - left >= step) many.add_to(range);
  few.add_to(range);
}

/// Of rows of a block that has its whole width.
ColourRange range_of_block(const RgbPicture& picture, std::int64_t left, std::int64_t top, std::int64_t bottom) {
  ByteRanges<row_samples> bytes;
  for (std::int64_t y = top; y < bottom; ++y) bytes.add(picture.pixel(left, y));
  ColourRange range;
  bytes.add_to(range);
  return range;
}

}  // namespace

std::array<int, 3> stroke_strengths(const RgbPicture& picture, std::int64_t left, std::int64_t top) {
  const StrokePatch patch(picture, left, top);
  const std::array<Lanes, stroke_reach + 1> columns = masks_of_columns(picture.width, left);
  Lanes all;
  all.fill(255);
  std::array<std::array<int, least_type_pixels>, 3> largest{};  // of each channel, falling
  for (std::int64_t y = 0; y < stroke_block; ++y) {
    Lanes heights{};
    const std::uint8_t* const values = patch.row(y, 0, 0);
    for (std::int64_t reach = 2; reach <= stroke_reach; ++reach) {
      raise_heights(heights, values, patch.row(y, 0, -reach), patch.row(y, 0, reach),
                    columns[static_cast<std::size_t>(reach)]);
      if (top + y < reach || top + y + reach >= picture.height) continue;
      raise_heights(heights, values, patch.row(y, -reach, 0), patch.row(y, reach, 0), all);
    }
    for (std::size_t i = 0; i < row_samples; ++i) {
      int height = heights[i];
      if (height < least_type_stroke) continue;
      for (int& each : largest[i % 3]) {
        if (height > each) std::swap(height, each);
      }
    }
  }
  return {largest[0].back(), largest[1].back(), largest[2].back()};
}

std::optional<int> glass_around(const RgbPicture& picture, std::int64_t left, std::int64_t top) {
  const PixelRange columns(std::max<std::int64_t>(0, left - stroke_block), left + 2 * stroke_block, 1.0, picture.width);
  const PixelRange rows(std::max<std::int64_t>(0, top - stroke_block), top + 2 * stroke_block, 1.0, picture.height);
  // Green first: stain takes most of it.
  const std::optional<int> green = usual_value(picture, columns, rows, 1);
  if (!green) return std::nullopt;
  for (const int channel : {0, 2}) {
    const std::optional<int> value = usual_value(picture, columns, rows, channel);
    if (!value || std::abs(*value - *green) > most_glass_colour) return std::nullopt;
  }
  return green;
}

ColourRange range_within(const RgbPicture& picture, std::int64_t left, std::int64_t top, std::int64_t right,
                         std::int64_t bottom, int enough) {
  constexpr std::int64_t rows_at_a_time = 8;
  ColourRange range;
  for (std::int64_t y = top; y < bottom; y += rows_at_a_time) {
    add_rows(range, picture, left, y, right, std::min(bottom, y + rows_at_a_time));
    if (std::ranges::all_of(range, [enough](const ChannelRange& each) { return each.size() >= enough; })) break;
  }
  return range;
}

BlockContrast::BlockContrast(const RgbPicture& picture)
    : columns_((picture.width + stroke_block - 1) / stroke_block),
      rows_((picture.height + stroke_block - 1) / stroke_block) {
  ranges_.reserve(static_cast<std::size_t>(columns_ * rows_));
  for (std::int64_t top = 0; top < picture.height; top += stroke_block) {
    for (std::int64_t left = 0; left < picture.width; left += stroke_block) {
      const std::int64_t bottom = std::min(top + stroke_block, picture.height);
      ranges_.push_back(left + stroke_block <= picture.width
                            ? range_of_block(picture, left, top, bottom)
                            : range_within(picture, left, top, picture.width, bottom, 256));
    }
  }
}

bool BlockContrast::has_any(std::int64_t column, std::int64_t row) const {
  ColourRange all;
  for (std::int64_t y = std::max<std::int64_t>(0, row - 1); y < std::min(rows_, row + 2); ++y) {
    for (std::int64_t x = std::max<std::int64_t>(0, column - 1); x < std::min(columns_, column + 2); ++x) {
      const ColourRange& each = ranges_[static_cast<std::size_t>(y * columns_ + x)];
      for (std::size_t i = 0; i < 3; ++i) all[i].add(each[i]);
    }
  }
  return std::ranges::any_of(all, [](const ChannelRange& each) { return each.size() >= least_type_stroke; });
}

}  // namespace slidestream
