#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/colour/host_device.hpp"

/// \file
/// A row of a level from one or two rows of the level above, for the device and for the host.

namespace slidestream::cuda {

/// Rows of a level that a band completes. Values of a level are what the next one is made of: of level 0 its pixels, of
/// the others sums of 2^level x 2^level pixels.
struct ReduceTask {
  const std::byte* above;      ///< values of the level above: of row `above_row`
  std::int64_t above_pitch;    ///< bytes
  std::int64_t above_row;      ///< the first that the band has
  const std::byte* carried;    ///< values of the row before it
  std::int64_t above_columns;  ///< of the whole level, as the next two
  std::int64_t above_rows;
  std::int64_t columns;
  std::int64_t first_row;  ///< that is made
  std::int64_t rows;       ///< that are made
  std::byte* sums;         ///< of the first of them; null when no level needs them
  std::int64_t sums_pitch;
  std::uint8_t* pixels;  ///< of the first of them
  std::int64_t pixels_pitch;
  std::int64_t image_width;
  std::int64_t image_height;
  int level;  ///< that is made

  SLIDESTREAM_HOST_DEVICE const std::byte* row_above(std::int64_t y) const {
    return y < above_row ? carried : above + (y - above_row) * above_pitch;
  }
};

/// Makes sample `at` (column times channels, and channel) of the task's row `row`:
/// floor((2 sum + n) / (2 n)) over the n pixels of its block that are inside the image, as LevelReducer has it.
template <class Above, class Sum, int channels>
SLIDESTREAM_HOST_DEVICE void reduce_sample(const ReduceTask& task, std::int64_t at, std::int64_t row) {
  const auto column = static_cast<std::uint32_t>(at) / channels;
  const std::int64_t left = at + static_cast<std::int64_t>(column) * channels;  // (2 column) channels + channel
  const std::int64_t y = task.first_row + row;
  const bool two_columns = 2 * std::int64_t{column} + 1 < task.above_columns;
  const bool two_rows = 2 * y + 1 < task.above_rows;
  const auto* const upper = reinterpret_cast<const Above*>(task.row_above(2 * y)) + left;
  std::uint32_t sum = upper[0];
  if (two_columns) sum += upper[channels];
  if (two_rows) {
    const auto* const lower = reinterpret_cast<const Above*>(task.row_above(2 * y + 1)) + left;
    sum += lower[0];
    if (two_columns) sum += lower[channels];
  }
  if (task.sums != nullptr) reinterpret_cast<Sum*>(task.sums + row * task.sums_pitch)[at] = static_cast<Sum>(sum);
  const int shift = 2 * task.level;
  const std::int64_t block = std::int64_t{1} << task.level;
  const std::int64_t block_columns = task.image_width - column * block;
  const std::int64_t block_rows = task.image_height - y * block;
  std::uint8_t* const pixel = task.pixels + row * task.pixels_pitch + at;
  if (block_columns >= block && block_rows >= block) {
    // The largest sum and the half fit: 4^12 times 255 and a half.
    *pixel = static_cast<std::uint8_t>((sum + (1U << (shift - 1))) >> shift);
    return;
  }
  const auto count = static_cast<std::uint64_t>((block_columns < block ? block_columns : block) *
                                                (block_rows < block ? block_rows : block));
  *pixel = static_cast<std::uint8_t>((2 * std::uint64_t{sum} + count) / (2 * count));
}

/// Columns that a thread makes at a time, where whole blocks lie side by side.
inline constexpr int columns_together = 4;

/// Makes columns `column` to `column + columns_together - 1` of the task's row `row`. Samples are made one by one at
/// the image's right and lower edge, and where rows aren't aligned.
template <class Above, class Sum, int channels>
SLIDESTREAM_HOST_DEVICE void reduce_columns(const ReduceTask& task, std::int64_t column, std::int64_t row,
                                            bool aligned) {
  constexpr int samples = columns_together * channels;
  const std::int64_t block = std::int64_t{1} << task.level;
  const std::int64_t y = task.first_row + row;
  if (!aligned || (column + columns_together) * block > task.image_width || (y + 1) * block > task.image_height) {
    for (std::int64_t at = column * channels; at < (column + columns_together) * channels; ++at) {
      if (at < task.columns * channels) reduce_sample<Above, Sum, channels>(task, at, row);
    }
    return;
  }
  struct alignas(8) AboveValues {
    Above values[2 * samples];
  };
  struct alignas(4) Sums {
    Sum values[samples];
  };
  struct alignas(4) Pixels {
    std::uint8_t values[samples];
  };
  const auto first = static_cast<std::int64_t>(2 * sizeof(Above) * channels) * column;
  const AboveValues upper = *reinterpret_cast<const AboveValues*>(task.row_above(2 * y) + first);
  const AboveValues lower = *reinterpret_cast<const AboveValues*>(task.row_above(2 * y + 1) + first);
  Sums sums;
  Pixels pixels;
  const int shift = 2 * task.level;
  const std::uint32_t half = 1U << (shift - 1);
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
  for (int i = 0; i < samples; ++i) {
    const int left = i + i / channels * channels;
    const std::uint32_t sum = std::uint32_t{upper.values[left]} + upper.values[left + channels] + lower.values[left] +
                              lower.values[left + channels];
    sums.values[i] = static_cast<Sum>(sum);
    pixels.values[i] = static_cast<std::uint8_t>((sum + half) >> shift);
  }
  *reinterpret_cast<Pixels*>(task.pixels + row * task.pixels_pitch + column * channels) = pixels;
  if (task.sums == nullptr) return;
  *reinterpret_cast<Sums*>(task.sums + row * task.sums_pitch +
                           column * channels * static_cast<std::int64_t>(sizeof(Sum))) = sums;
}

/// Whether `reduce_columns` may read and write several samples at a time.
inline bool is_aligned(const ReduceTask& task) {
  const auto bits =
      reinterpret_cast<std::uintptr_t>(task.above) | static_cast<std::uintptr_t>(task.above_pitch) |
      reinterpret_cast<std::uintptr_t>(task.carried) |
      2 * (reinterpret_cast<std::uintptr_t>(task.pixels) | static_cast<std::uintptr_t>(task.pixels_pitch));
  return bits % 8 == 0;
}

/// Bytes of a value of a level, and of the level above it, as `call<Above, Sum>()` wants them.
constexpr std::size_t value_bytes(int level) { return level == 0 ? 1 : level <= 4 ? 2 : 4; }

/// Calls `call.template operator()<Above, Sum>()` with the types of a level.
template <class Call>
void with_value_types(int level, const Call& call) {
  using std::uint16_t, std::uint32_t, std::uint8_t;
  if (level == 1) {
    call.template operator()<uint8_t, uint16_t>();
  } else if (value_bytes(level) == sizeof(uint16_t)) {
    call.template operator()<uint16_t, uint16_t>();
  } else if (value_bytes(level - 1) == sizeof(uint16_t)) {
    call.template operator()<uint16_t, uint32_t>();
  } else {
    call.template operator()<uint32_t, uint32_t>();
  }
}

}  // namespace slidestream::cuda
