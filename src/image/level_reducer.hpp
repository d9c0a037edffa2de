#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/image.hpp>
#include <vector>

#include "image/pyramid_layout.hpp"

/// \file
/// The smaller levels of an image, made while its rows pass by.

namespace slidestream {

/// Gives the memory that a level's rows are written to.
class LevelRows {
 public:
  virtual ~LevelRows() = default;
  /// First sample of column 0 of row `y` of level `level`, 1 or more. Called once a row, from top to bottom.
  virtual std::byte* row(int level, std::int64_t y) = 0;
};

/// Makes all smaller levels of some columns of an image, which it is given row by row. Memory: some rows of these
/// columns, whatever the image's height.
///
/// A sample of level k comes from the n samples of the 2^k x 2^k block of the image that are inside it:
/// - uint8, uint16: floor((2 sum + n) / (2 n)). Sums are handed down from level to level, so that a sample is rounded
///   once; averages of averages, each rounded half up, would brighten an image by 1/8 a level.
/// - float32: float32(sum / n). A sum is (a + b) + (c + d) of the sums of the level above, row-major and in float64;
///   what is outside adds nothing. This order is fixed, so bands and columns don't change a bit.
/// - labels: the block's first sample.
///
/// Thread-safety: one object a thread; objects for other columns are independent.
class LevelReducer {
 public:
  /// \param begin, end  columns of the image. `begin` is a multiple of `alignment(layout)`, `end` as well or the
  /// image's width.
  LevelReducer(const PyramidLayout& layout, PixelFormat format, bool labels, std::int64_t begin, std::int64_t end);

  static std::int64_t alignment(const PyramidLayout& layout) noexcept {
    return std::int64_t{1} << (layout.levels() - 1);
  }

  /// Takes the next `count` rows of the image. `row` is column `begin` of the first one, `pitch` bytes lie from a row
  /// to the next. What becomes known of each level is written to `to`.
  void add(const std::byte* row, std::ptrdiff_t pitch, std::int64_t count, LevelRows& to);

  /// Makes a row of a level from one or two of the level above; see level_reducer.cpp.
  struct RowPair;
  using MakeRow = void (*)(const RowPair& pair);

 private:
  struct Level {
    std::int64_t begin = 0;    ///< columns of the level
    std::int64_t columns = 0;  ///< how many
    std::int64_t height = 0;   ///< of the whole level
    std::int64_t done = 0;     ///< rows
    std::size_t row_bytes = 0;
    MakeRow make = nullptr;            ///< from the level above
    std::vector<std::byte> values[2];  ///< what the level below is made of, of an even row and of the odd one after it
  };

  void make_row(int level, const std::byte* upper, const std::byte* lower, LevelRows& to);

  PixelFormat format_;
  std::int64_t image_height_;
  std::int64_t image_width_;
  std::vector<Level> levels_;
};

}  // namespace slidestream
