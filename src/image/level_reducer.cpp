#include "image/level_reducer.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "image/halve.hpp"

namespace slidestream {

/// Rows of the level above, and where a row made of them goes.
struct LevelReducer::RowPair {
  const std::byte* upper;
  const std::byte* lower;  ///< null: beyond the image
  std::byte* values;       ///< of the new row, for the level below it: sums, or pixels where those are enough
  std::byte* pixels;
  std::int64_t above;    ///< columns above
  std::int64_t columns;  ///< of the new row
  int channels;
  int level;                      ///< of the new row
  std::int64_t block_rows;        ///< rows of the image in the new row's blocks
  std::int64_t last_block_width;  ///< columns of the image in its last block
};

namespace {

using RowPair = LevelReducer::RowPair;

// Sums of 2^level x 2^level samples, and half a unit for rounding, fit 16 or 32 bits up to these levels.
constexpr int last_level_of_16_bits_from_8 = 4;
constexpr int last_level_of_32_bits_from_8 = 12;
constexpr int last_level_of_32_bits_from_16 = 8;

template <class T>
const T* as(const std::byte* bytes) {
  return reinterpret_cast<const T*>(bytes);
}
template <class T>
T* as(std::byte* bytes) {
  return reinterpret_cast<T*>(bytes);
}

template <class Sum>
std::uint64_t rounded(Sum sum, std::uint64_t samples) {
  return (2 * static_cast<std::uint64_t>(sum) + samples) / (2 * samples);
}

/// Whole blocks, of 4^level samples each.
template <class Above, class Sum, class Pixel, int fixed_channels>
void sum_whole_blocks(const RowPair& pair, std::int64_t from, std::int64_t to) {
  const int channels = fixed_channels > 0 ? fixed_channels : pair.channels;
  const auto* upper = as<Above>(pair.upper);
  const auto* lower = as<Above>(pair.lower);
  auto* sums = as<Sum>(pair.values);
  auto* pixels = as<Pixel>(pair.pixels);
  const int shift = 2 * pair.level;
  const Sum half = static_cast<Sum>(Sum{1} << (shift - 1));
  for (std::int64_t x = from; x < to; ++x) {
    for (int c = 0; c < channels; ++c) {
      const std::int64_t left = 2 * x * channels + c;
      const std::int64_t right = left + channels;
      // The promotion of small sums to int is undone.
      const auto sum = static_cast<Sum>(static_cast<Sum>(upper[left]) + upper[right] + lower[left] + lower[right]);
      sums[x * channels + c] = sum;
      // A sum of the largest samples and the half still fits: 4^level times the largest sample plus a half of it.
      pixels[x * channels + c] = static_cast<Pixel>((sum + half) >> shift);
    }
  }
}

template <class Above, class Sum, class Pixel>
void sum_rows(const RowPair& pair) {
  const bool whole_rows = pair.lower != nullptr && pair.block_rows == std::int64_t{1} << pair.level;
  const bool whole_last = pair.last_block_width == std::int64_t{1} << pair.level;
  std::int64_t x = 0;
  if (whole_rows) {
    const std::int64_t whole = whole_last ? pair.columns : pair.columns - 1;
    if constexpr (std::is_same_v<Above, std::uint8_t>) {
      x = halve(as<std::uint8_t>(pair.upper), as<std::uint8_t>(pair.lower), as<std::uint16_t>(pair.values),
                as<std::uint8_t>(pair.pixels), whole, pair.channels);
    }
    if (pair.channels == 1) {
      sum_whole_blocks<Above, Sum, Pixel, 1>(pair, x, whole);
    } else if (pair.channels == 3) {
      sum_whole_blocks<Above, Sum, Pixel, 3>(pair, x, whole);
    } else {
      sum_whole_blocks<Above, Sum, Pixel, 0>(pair, x, whole);
    }
    x = whole;
  }
  const int channels = pair.channels;
  for (; x < pair.columns; ++x) {
    const bool two_columns = 2 * x + 1 < pair.above;
    const std::int64_t width = x + 1 == pair.columns ? pair.last_block_width : std::int64_t{1} << pair.level;
    for (int c = 0; c < channels; ++c) {
      const std::int64_t left = 2 * x * channels + c;
      Sum sum = as<Above>(pair.upper)[left];
      if (two_columns) sum = static_cast<Sum>(sum + as<Above>(pair.upper)[left + channels]);
      if (pair.lower != nullptr) {
        sum = static_cast<Sum>(sum + as<Above>(pair.lower)[left]);
        if (two_columns) sum = static_cast<Sum>(sum + as<Above>(pair.lower)[left + channels]);
      }
      as<Sum>(pair.values)[x * channels + c] = sum;
      as<Pixel>(pair.pixels)[x * channels + c] =
          static_cast<Pixel>(rounded(sum, static_cast<std::uint64_t>(width * pair.block_rows)));
    }
  }
}

/// Sums stay float64 from level to level, and each mean is rounded to float32 once.
template <class Above>
void average_rows(const RowPair& pair) {
  const int channels = pair.channels;
  const auto* upper = as<Above>(pair.upper);
  const auto* lower = as<Above>(pair.lower);
  auto* sums = as<double>(pair.values);
  auto* pixels = as<float>(pair.pixels);
  const std::int64_t block = std::int64_t{1} << pair.level;
  for (std::int64_t x = 0; x < pair.columns; ++x) {
    const bool two_columns = 2 * x + 1 < pair.above;
    const std::int64_t width = x + 1 == pair.columns ? pair.last_block_width : block;
    const auto samples = static_cast<double>(width * pair.block_rows);
    for (int c = 0; c < channels; ++c) {
      const std::int64_t left = 2 * x * channels + c;
      const std::int64_t right = left + channels;
      const auto row_sum = [&](const Above* row) {
        const double first = row[left];
        return two_columns ? first + row[right] : first;
      };
      const double sum = lower != nullptr ? row_sum(upper) + row_sum(lower) : row_sum(upper);
      sums[x * channels + c] = sum;
      pixels[x * channels + c] = static_cast<float>(sum / samples);
    }
  }
}

template <class Pixel>
void pick_rows(const RowPair& pair) {
  const int channels = pair.channels;
  const auto* upper = as<Pixel>(pair.upper);
  auto* pixels = as<Pixel>(pair.pixels);
  for (std::int64_t x = 0; x < pair.columns; ++x) {
    for (int c = 0; c < channels; ++c) pixels[x * channels + c] = upper[2 * x * channels + c];
  }
  std::memcpy(pair.values, pair.pixels, static_cast<std::size_t>(pair.columns) * channels * sizeof(Pixel));
}

/// How a level is made, and the bytes of a value that is handed to the level below.
struct Way {
  LevelReducer::MakeRow make;
  std::size_t value_bytes;
};

template <class Above, class Sum, class Pixel>
Way way_of_sums() {
  return {sum_rows<Above, Sum, Pixel>, sizeof(Sum)};
}

Way way_to(int level, SampleType sample, bool labels) {
  using std::uint16_t, std::uint32_t, std::uint64_t, std::uint8_t;
  if (labels) {
    if (sample == SampleType::uint8) return {pick_rows<uint8_t>, 1};
    if (sample == SampleType::uint16) return {pick_rows<uint16_t>, 2};
    return {pick_rows<uint32_t>, 4};
  }
  if (sample == SampleType::float32) {
    return {level == 1 ? average_rows<float> : average_rows<double>, sizeof(double)};
  }
  if (sample == SampleType::uint8) {
    if (level == 1) return way_of_sums<uint8_t, uint16_t, uint8_t>();
    if (level <= last_level_of_16_bits_from_8) return way_of_sums<uint16_t, uint16_t, uint8_t>();
    if (level == last_level_of_16_bits_from_8 + 1) return way_of_sums<uint16_t, uint32_t, uint8_t>();
    if (level <= last_level_of_32_bits_from_8) return way_of_sums<uint32_t, uint32_t, uint8_t>();
    if (level == last_level_of_32_bits_from_8 + 1) return way_of_sums<uint32_t, uint64_t, uint8_t>();
    return way_of_sums<uint64_t, uint64_t, uint8_t>();
  }
  if (level == 1) return way_of_sums<uint16_t, uint32_t, uint16_t>();
  if (level <= last_level_of_32_bits_from_16) return way_of_sums<uint32_t, uint32_t, uint16_t>();
  if (level == last_level_of_32_bits_from_16 + 1) return way_of_sums<uint32_t, uint64_t, uint16_t>();
  return way_of_sums<uint64_t, uint64_t, uint16_t>();
}

}  // namespace

LevelReducer::LevelReducer(const PyramidLayout& layout, PixelFormat format, bool labels, std::int64_t begin,
                           std::int64_t end)
    : format_(format), image_height_(layout.size(0).height), image_width_(layout.size(0).width) {
  for (int level = 0; level < layout.levels(); ++level) {
    Level made;
    const Size size = layout.size(level);
    made.begin = begin >> level;
    made.columns = (end == image_width_ ? size.width : end >> level) - made.begin;
    made.height = size.height;
    const auto samples = static_cast<std::size_t>(made.columns) * static_cast<std::size_t>(format.channels);
    std::size_t value_bytes = bytes_of(format.sample);
    if (level > 0) {
      const Way way = way_to(level, format.sample, labels);
      made.make = way.make;
      value_bytes = way.value_bytes;
      made.values[1].resize(samples * value_bytes);
    }
    made.values[0].resize(samples * value_bytes);
    made.row_bytes = samples * value_bytes;
    levels_.push_back(std::move(made));
  }
}

void LevelReducer::add(const std::byte* row, std::ptrdiff_t pitch, std::int64_t count, LevelRows& to) {
  Level& base = levels_[0];
  if (levels_.size() == 1) {
    base.done += count;
    return;
  }
  for (std::int64_t i = 0; i < count; ++i, row += pitch, ++base.done) {
    const bool last = base.done + 1 == base.height;
    if (base.done % 2 != 0) {
      make_row(1, i > 0 ? row - pitch : base.values[0].data(), row, to);
    } else if (last) {
      make_row(1, row, nullptr, to);
    } else if (i + 1 == count) {
      // The row that it is paired with isn't here yet.
      std::memcpy(base.values[0].data(), row, base.row_bytes);
    }
  }
}

void LevelReducer::make_row(int level, const std::byte* upper, const std::byte* lower, LevelRows& to) {
  Level& made = levels_[static_cast<std::size_t>(level)];
  const Level& above = levels_[static_cast<std::size_t>(level) - 1];
  const std::int64_t y = made.done++;
  const std::int64_t block = std::int64_t{1} << level;
  RowPair pair{};
  pair.upper = upper;
  pair.lower = lower;
  pair.values = made.values[y % 2].data();
  pair.pixels = to.row(level, y) + made.begin * static_cast<std::int64_t>(format_.pixel_bytes());
  pair.above = above.columns;
  pair.columns = made.columns;
  pair.channels = format_.channels;
  pair.level = level;
  pair.block_rows = std::min(block, image_height_ - y * block);
  pair.last_block_width = std::min(block, image_width_ - (made.begin + made.columns - 1) * block);
  made.make(pair);
  if (static_cast<std::size_t>(level) + 1 == levels_.size()) return;
  if (y % 2 != 0) {
    make_row(level + 1, made.values[0].data(), made.values[1].data(), to);
  } else if (y + 1 == made.height) {
    make_row(level + 1, made.values[0].data(), nullptr, to);
  }
}

}  // namespace slidestream
