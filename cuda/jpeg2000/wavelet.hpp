#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg2000/block_decoder.hpp"

/// \file
/// Coefficients from their bits, and the inverse wavelet transforms (ISO/IEC 15444-1, annexes E and F), with the
/// arithmetic of OpenJPEG to the bit. One source for device and host.

namespace slidestream::cuda {

/// What a block's bits mean.
struct BlockScale {
  float unit;           ///< 9/7: half a step at the last coded plane
  std::uint32_t shift;  ///< 5/3: planes that aren't coded
  std::uint32_t
      ends_within;  ///< 1: the last pass is a significance pass, which leaves some coefficients a plane behind
};

SLIDESTREAM_HOST_DEVICE BlockScale block_scale(std::uint32_t passes, std::uint32_t bit_planes,
                                               std::uint32_t coded_planes, float half_step) {
  const std::uint32_t left = bit_planes - coded_planes;
  return {product(half_step, static_cast<float>(1U << left)), left, passes % 3 == 2 ? 1U : 0U};
}

/// The middle of what a coefficient may be, in halves of the last coded plane's bit: `magnitude` is what its planes
/// say, and not 0.
SLIDESTREAM_HOST_DEVICE std::uint32_t middle(std::uint32_t magnitude, const BlockScale& scale) {
  return 2 * magnitude + 1 + (scale.ends_within & ~magnitude);
}

/// The irreversible 9/7 filter.
struct Wavelet97 {
  using Value = float;
  static constexpr bool reversible = false;
  static constexpr std::uint32_t rows_late = 3;  ///< of `push_inner`: the first row is so many before 2 * i

  static constexpr float low_scale = 1.230174105F;
  static constexpr float high_scale = 1.625732422F;
  // Lifting steps, as they are added.
  static constexpr float delta = -0.443506852F;
  static constexpr float gamma = -0.882911075F;
  static constexpr float beta = 0.052980118F;
  static constexpr float alpha = 1.586134342F;

  static SLIDESTREAM_HOST_DEVICE float value(std::uint32_t magnitude, std::uint32_t negative, const BlockScale& scale) {
    if (magnitude == 0) return 0.0F;
    const float v = product(static_cast<float>(static_cast<int>(middle(magnitude, scale))), scale.unit);
    return negative != 0 ? -v : v;
  }
  static SLIDESTREAM_HOST_DEVICE float lifted(float x, float left, float right, float by) {
    return sum(x, product(sum(left, right), by));
  }
  static SLIDESTREAM_HOST_DEVICE int rounded(float v) { return nearest(v); }

  /// A column as its pairs of a low and a high sample arrive.
  class Column {
   public:
    /// Pair `i` of `lows` and `highs` samples; calls `emit(row, value)` for rows that are done, up to two pairs later.
    template <class Emit>
    SLIDESTREAM_HOST_DEVICE void push(std::uint32_t i, std::uint32_t lows, std::uint32_t highs, float low, float high,
                                      Emit emit) {
      if (highs == 0 && lows == 1) {
        emit(0U, low);
        return;
      }
      const bool first = i == 0;
      const float h = i < highs ? product(high, high_scale) : high_;
      const float l1 = lifted(product(low, low_scale), first ? h : high_, h, delta);
      if (!first) {
        const float h1 = lifted(high_, low1_, l1, gamma), l2 = lifted(low1_, i > 1 ? high1_ : h1, h1, beta);
        emit(2 * i - 2, l2);
        if (i > 1) emit(2 * i - 3, lifted(high1_, low2_, l2, alpha));
        high1_ = h1;
        low2_ = l2;
      }
      high_ = h;
      low1_ = l1;
      if (i + 1 < lows) return;
      const float h1 = i < highs ? lifted(h, l1, l1, gamma) : high1_;
      const float l2 = lifted(l1, first ? h1 : high1_, h1, beta);
      emit(2 * i, l2);
      if (!first) emit(2 * i - 1, lifted(high1_, low2_, l2, alpha));
      if (i < highs) emit(2 * i + 1, lifted(h1, l2, l2, alpha));
    }

    /// The same for pairs 2 and later that aren't the last: the rows `rows_late` before 2 * i, and the next.
    SLIDESTREAM_HOST_DEVICE void push_inner(float low, float high, float& odd, float& even) {
      const float h = product(high, high_scale), l1 = lifted(product(low, low_scale), high_, h, delta);
      const float h1 = lifted(high_, low1_, l1, gamma), l2 = lifted(low1_, high1_, h1, beta);
      odd = lifted(high1_, low2_, l2, alpha);
      even = l2;
      high_ = h;
      low1_ = l1;
      high1_ = h1;
      low2_ = l2;
    }

   private:
    float high_ = 0, low1_ = 0, high1_ = 0, low2_ = 0;
  };
};

/// The reversible 5/3 filter.
struct Wavelet53 {
  using Value = int;
  static constexpr bool reversible = true;
  static constexpr std::uint32_t rows_late = 1;

  static SLIDESTREAM_HOST_DEVICE int even(int low, int left, int right) { return low - ((left + right + 2) >> 2); }
  static SLIDESTREAM_HOST_DEVICE int odd(int high, int left, int right) { return high + ((left + right) >> 1); }

  static SLIDESTREAM_HOST_DEVICE int value(std::uint32_t magnitude, std::uint32_t negative, const BlockScale& scale) {
    if (magnitude == 0) return 0;
    const int v = static_cast<int>(middle(magnitude, scale) << scale.shift >> 1);
    return negative != 0 ? -v : v;
  }
  static SLIDESTREAM_HOST_DEVICE int rounded(int v) { return v; }

  /// As that of the 9/7 filter.
  class Column {
   public:
    template <class Emit>
    SLIDESTREAM_HOST_DEVICE void push(std::uint32_t i, std::uint32_t lows, std::uint32_t highs, int low, int high,
                                      Emit emit) {
      if (highs == 0 && lows == 1) {
        emit(0U, low);
        return;
      }
      const int h = i < highs ? high : high_;
      const int row = even(low, i == 0 ? h : high_, h);
      if (i > 0) emit(2 * i - 1, odd(high_, even_, row));
      emit(2 * i, row);
      if (i + 1 == lows && i < highs) emit(2 * i + 1, odd(h, row, row));
      high_ = h;
      even_ = row;
    }
    SLIDESTREAM_HOST_DEVICE void push_inner(int low, int high, int& before, int& row) {
      row = even(low, high_, high);
      before = odd(high_, even_, row);
      high_ = high;
      even_ = row;
    }

   private:
    int high_ = 0, even_ = 0;
  };
};

SLIDESTREAM_HOST_DEVICE std::uint8_t to_sample(int value) {
  value += 128;
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

}  // namespace slidestream::cuda
