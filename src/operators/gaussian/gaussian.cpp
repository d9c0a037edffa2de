#include "operators/gaussian/gaussian.hpp"

#include <cmath>
#include <cstddef>

#include "image/mirror.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/gaussian/gaussian.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first
#include <hwy/highway.h>

// Sums down the columns have 24 bits, those across them 40. To stay in 32 bits the first are cut into two halves of 12,
// which are summed apart; 16-bit products of two neighbours at a time do both. A weight is shared by the two samples at
// its distance, whose sum it multiplies; the centre is taken as two samples with half its (even) weight.

HWY_BEFORE_NAMESPACE();
namespace slidestream::operators::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

std::size_t SumColumns(std::int16_t*, std::int16_t*, const std::uint8_t* const*, const std::int32_t*, std::size_t,
                       std::size_t) {
  return 0;
}
std::size_t SumRow(std::uint8_t*, const std::int16_t*, const std::int16_t*, const std::int32_t*, std::size_t,
                   std::ptrdiff_t, std::size_t) {
  return 0;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Int16 = hn::ScalableTag<std::int16_t>;
using Int32 = hn::ScalableTag<std::int32_t>;
constexpr Int16 d16;
constexpr Int32 d32;
constexpr hn::Rebind<std::uint8_t, Int16> d8;

/// Sums of products in 32 bits, of the lower and the upper halves of all blocks of 128 bits.
struct Sums {
  hn::Vec<Int32> lower, upper;
};

HWY_INLINE hn::Vec<Int32> plus_products(hn::Vec<Int32> sum, hn::Vec<Int16> a, hn::Vec<Int16> b) {
  // Rearranged sums can't be accumulated to: on Arm their lanes are in another order.
  auto odd = hn::Zero(d32);
  const auto even = hn::ReorderWidenMulAccumulate(d32, a, b, hn::Zero(d32), odd);
  return hn::Add(sum, hn::RearrangeToOddPlusEven(even, odd));
}

HWY_INLINE void add_products(Sums& sums, hn::Vec<Int16> first, hn::Vec<Int16> second, hn::Vec<Int16> weights) {
  sums.lower = plus_products(sums.lower, hn::InterleaveLower(d16, first, second), weights);
  sums.upper = plus_products(sums.upper, hn::InterleaveUpper(d16, first, second), weights);
}

HWY_INLINE hn::Vec<Int16> weights_of(std::int32_t pair) { return hn::BitCast(d16, hn::Set(d32, pair)); }

/// Narrowing takes blocks of 128 bits in turn, as interleaving gave them.
HWY_INLINE hn::Vec<Int16> narrowed(hn::Vec<Int32> lower, hn::Vec<Int32> upper) {
  return hn::ReorderDemote2To(d16, lower, upper);
}

/// Weighted sums over `rows`, whose first and last are those of the last weight: 4 `pairs` - 1 of them. Does all of `n`
/// samples and returns n, or none and returns 0.
std::size_t SumColumns(std::int16_t* HWY_RESTRICT high, std::int16_t* HWY_RESTRICT low,
                       const std::uint8_t* const* HWY_RESTRICT centre, const std::int32_t* HWY_RESTRICT weights,
                       std::size_t pairs, std::size_t n) {
  const std::size_t lanes = hn::Lanes(d16);
  if (n < lanes) return 0;
  for (std::size_t x = 0; x < n; x += lanes) {
    x = HWY_MIN(x, n - lanes);
    const auto both = [&](std::ptrdiff_t k) HWY_ATTR {
      return hn::Add(hn::PromoteTo(d16, hn::LoadU(d8, centre[-k] + x)),
                     hn::PromoteTo(d16, hn::LoadU(d8, centre[k] + x)));
    };
    Sums sums = {hn::Zero(d32), hn::Zero(d32)};
    for (std::size_t p = 0; p < pairs; ++p) {
      const auto k = static_cast<std::ptrdiff_t>(2 * p);
      add_products(sums, both(k), both(k + 1), weights_of(weights[p]));
    }
    const auto mask = hn::Set(d32, 4095);
    hn::StoreU(narrowed(hn::ShiftRight<12>(sums.lower), hn::ShiftRight<12>(sums.upper)), d16, high + x);
    hn::StoreU(narrowed(hn::And(sums.lower, mask), hn::And(sums.upper, mask)), d16, low + x);
  }
  return n;
}

/// Weighted sums along a row, neighbours `step` samples apart, rounded to bytes. All of `n` samples or none.
std::size_t SumRow(std::uint8_t* HWY_RESTRICT out, const std::int16_t* HWY_RESTRICT high,
                   const std::int16_t* HWY_RESTRICT low, const std::int32_t* HWY_RESTRICT weights, std::size_t pairs,
                   std::ptrdiff_t step, std::size_t n) {
  const std::size_t lanes = hn::Lanes(d16);
  if (n < lanes) return 0;
  const auto half = hn::Set(d32, 1 << 19);
  for (std::size_t x = 0; x < n; x += lanes) {
    x = HWY_MIN(x, n - lanes);
    const auto both = [&](const std::int16_t* row, std::ptrdiff_t k) HWY_ATTR {
      return hn::Add(hn::LoadU(d16, row + x - k * step), hn::LoadU(d16, row + x + k * step));
    };
    Sums highs = {half, half};
    Sums lows = {hn::Zero(d32), hn::Zero(d32)};
    for (std::size_t p = 0; p < pairs; ++p) {
      const auto k = static_cast<std::ptrdiff_t>(2 * p);
      const auto pair = weights_of(weights[p]);
      add_products(highs, both(high, k), both(high, k + 1), pair);
      add_products(lows, both(low, k), both(low, k + 1), pair);
    }
    // (4096 high + low + 2^31) >> 32: the low part counts in whole 4096ths only.
    const auto lower = hn::ShiftRight<20>(hn::Add(highs.lower, hn::ShiftRight<12>(lows.lower)));
    const auto upper = hn::ShiftRight<20>(hn::Add(highs.upper, hn::ShiftRight<12>(lows.upper)));
    hn::StoreU(hn::DemoteTo(d8, narrowed(lower, upper)), d8, out + x);
  }
  return n;
}

#endif

}  // namespace
}  // namespace slidestream::operators::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream::operators {
namespace {

HWY_EXPORT(SumColumns);
HWY_EXPORT(SumRow);

constexpr std::int32_t whole_weight = 65536;

/// Samples of a row that are made at a time, so that what they are made from stays in the nearest cache.
constexpr std::int64_t block_samples = 3072;

const PixelFormat& checked_format(const PixelFormat& format) {
  if (format != luminance_format && format != rgb_format) {
    throw std::invalid_argument("the Gaussian takes luminance or RGB of 8 bits");
  }
  return format;
}

}  // namespace

GaussianWeights gaussian_weights(int radius, double sigma) {
  if (radius < 0 || radius > max_smoothing_radius || !(sigma > 0.0)) {
    throw std::invalid_argument("a Gaussian has a radius of 0 to 16 and a sigma above 0");
  }
  const GaussianTaps taps = gaussian_taps(radius, sigma);
  GaussianWeights weights{};
  weights[0] = whole_weight;
  for (std::size_t i = 1; i < weights.size(); ++i) {
    weights[i] = static_cast<std::int32_t>(std::nearbyint(whole_weight * taps[i]));
    weights[0] -= 2 * weights[i];
  }
  return weights;
}

Gaussian::Gaussian(int radius, double sigma) : radius_(radius), weights_(gaussian_weights(radius, sigma)) {
  // Weights in pairs; one beyond the radius is zero.
  for (int k = 0; k <= radius; k += 2) {
    const std::int32_t first = k == 0 ? weights_[0] / 2 : weights_[static_cast<std::size_t>(k)];
    const std::int32_t second = k < radius ? weights_[static_cast<std::size_t>(k) + 1] : 0;
    pairs_.push_back(first + second * 65536);
  }
  rows_.resize(4 * pairs_.size() - 1);
}

void Gaussian::run(const HostView& out, const ConstHostView& in) {
  require_input(out, in, border(), checked_format(out.format));
  if (weights_[0] == whole_weight) {
    copy_pixels(out, in);
    return;
  }
  const std::int64_t block = block_samples / out.format.channels;
  for (std::int64_t x = out.rect.x; x < out.rect.right(); x += block) {
    columns(out, in, x, std::min(x + block, out.rect.right()));
  }
}

void Gaussian::columns(const HostView& out, const ConstHostView& in, std::int64_t begin, std::int64_t end) {
  const int channels = out.format.channels;
  // One distance more than the radius is read, with a weight of zero, where the number of weights is odd.
  const auto reach = static_cast<std::int64_t>(2 * pairs_.size() - 1);
  const std::int64_t left = begin - reach;
  const std::int64_t right = end + reach;
  const auto samples = static_cast<std::size_t>((right - left) * channels);
  if (high_.size() < samples) {
    high_.resize(samples);
    low_.resize(samples);
  }
  const std::int64_t inside_begin = std::max(begin - radius_, std::int64_t{0});
  const std::int64_t inside_end = std::min(end + radius_, in.image.width);
  const auto inside = static_cast<std::size_t>((inside_end - inside_begin) * channels);
  const std::size_t inside_at = static_cast<std::size_t>((inside_begin - left) * channels);

  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    for (std::int64_t k = -reach; k <= reach; ++k) {
      const std::int64_t row = mirror_reflect(y + std::clamp<std::int64_t>(k, -radius_, radius_), in.image.height);
      rows_[static_cast<std::size_t>(k + reach)] =
          in.row<const std::uint8_t>(row) + (inside_begin - in.rect.x) * channels;
    }
    const std::uint8_t* const* centre = rows_.data() + reach;
    std::size_t i = HWY_DYNAMIC_DISPATCH(SumColumns)(high_.data() + inside_at, low_.data() + inside_at, centre,
                                                     pairs_.data(), pairs_.size(), inside);
    for (; i < inside; ++i) {
      std::int32_t sum = weights_[0] * centre[0][i];
      for (int k = 1; k <= radius_; ++k) sum += weights_[static_cast<std::size_t>(k)] * (centre[-k][i] + centre[k][i]);
      high_[inside_at + i] = static_cast<std::int16_t>(sum >> 12);
      low_[inside_at + i] = static_cast<std::int16_t>(sum & 4095);
    }
    const auto mirror_into = [&](std::int64_t x) {
      const std::int64_t from = mirror_reflect(x, in.image.width);
      for (int c = 0; c < channels; ++c) {
        const auto to_at = static_cast<std::size_t>((x - left) * channels + c);
        const auto from_at = static_cast<std::size_t>((from - left) * channels + c);
        high_[to_at] = high_[from_at];
        low_[to_at] = low_[from_at];
      }
    };
    for (std::int64_t x = begin - radius_; x < inside_begin; ++x) mirror_into(x);
    for (std::int64_t x = inside_end; x < end + radius_; ++x) mirror_into(x);

    const std::int16_t* high = high_.data() + reach * channels;
    const std::int16_t* low = low_.data() + reach * channels;
    std::uint8_t* to = out.row<std::uint8_t>(y) + (begin - out.rect.x) * channels;
    const auto wanted = static_cast<std::ptrdiff_t>((end - begin) * channels);
    auto x = static_cast<std::ptrdiff_t>(HWY_DYNAMIC_DISPATCH(SumRow)(to, high, low, pairs_.data(), pairs_.size(),
                                                                      channels, static_cast<std::size_t>(wanted)));
    for (; x < wanted; ++x) {
      std::int64_t sum = 0;
      for (std::ptrdiff_t k = -radius_; k <= radius_; ++k) {
        const std::ptrdiff_t at = x + k * channels;
        sum += std::int64_t{weights_[static_cast<std::size_t>(std::abs(k))]} * (high[at] * 4096 + low[at]);
      }
      to[x] = static_cast<std::uint8_t>((sum + (std::int64_t{1} << 31)) >> 32);
    }
  }
}

}  // namespace slidestream::operators
#endif
