#include "spectrum/plain_kernels.hpp"

#include "spectrum/smoothing.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "spectrum/plain_kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
void smooth_columns(D d, float* out, const std::uint8_t* const* rows, const float* taps, int radius,
                    std::size_t width) {
  const hn::RebindToSigned<D> d32;
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::Rebind<std::uint8_t, D> d8;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t begin = 0; begin < width; begin += lanes) {
    // The last vector overlaps the one before: rows end where the plane's memory may end.
    const std::size_t x = begin + lanes <= width ? begin : width - lanes;
    const auto centre = hn::PromoteTo(d32, hn::LoadU(d8, rows[radius] + x));
    auto sum = hn::Mul(hn::Set(d, taps[0]), hn::ConvertTo(d, hn::Sub(centre, hn::Set(d32, luminance_offset))));
    for (int i = 1; i <= radius; ++i) {
      // Two pixels at the same distance share a tap, and add exactly as integers.
      const auto above = hn::PromoteTo(d16, hn::LoadU(d8, rows[radius - i] + x));
      const auto below = hn::PromoteTo(d16, hn::LoadU(d8, rows[radius + i] + x));
      const auto both = hn::Sub(hn::PromoteTo(d32, hn::Add(above, below)), hn::Set(d32, 2 * luminance_offset));
      sum = hn::MulAdd(hn::Set(d, taps[i]), hn::ConvertTo(d, both), sum);
    }
    hn::StoreU(sum, d, out + x);
  }
}

void SmoothVertically(float* out, const std::uint8_t* const* rows, const float* taps, int radius, std::size_t width) {
  const hn::ScalableTag<float> wide;
  if (width >= hn::Lanes(wide)) {
    smooth_columns(wide, out, rows, taps, radius, width);
  } else {
    smooth_columns(hn::CappedTag<float, 8>(), out, rows, taps, radius, width);
  }
}

void SmoothHorizontally(float* out, const float* in, const float* taps, int radius, std::size_t width) {
  const hn::ScalableTag<float> d;
  for (std::size_t x = 0; x < width; x += hn::Lanes(d)) {
    auto sum = hn::Mul(hn::Set(d, taps[0]), hn::LoadU(d, in + x));
    for (int i = 1; i <= radius; ++i) {
      sum = hn::MulAdd(hn::Set(d, taps[i]), hn::Add(hn::LoadU(d, in + x - i), hn::LoadU(d, in + x + i)), sum);
    }
    hn::StoreU(sum, d, out + x);
  }
}

template <ValueKind kind, class D, class V>
HWY_INLINE V value_of(D d, V re, V im) {
  const V magnitude = hn::Sqrt(hn::MulAdd(re, re, hn::Mul(im, im)));
  if constexpr (kind == ValueKind::linear) return magnitude;
  const V decibels_per_neper = hn::Set(d, 8.685889638065036553F);  // 20 / ln 10
  if constexpr (kind == ValueKind::db) {
    return hn::Mul(decibels_per_neper, hn::Log(d, hn::Max(magnitude, hn::Set(d, 1e-6F))));
  } else {
    return hn::Mul(decibels_per_neper, hn::Log(d, hn::Add(magnitude, hn::Set(d, 1.0F))));
  }
}

template <ValueKind kind>
RowSums bin_row_as(float* values, std::int32_t* bins, const std::complex<float>* row, std::size_t count,
                   const Binning& binning) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> d32;
  const float* from = reinterpret_cast<const float*>(row);
  auto sum = hn::Zero(d);
  auto squares = hn::Zero(d);
  std::size_t clipped = 0;
  for (std::size_t x = 0; x < count; x += hn::Lanes(d)) {
    hn::Vec<decltype(d)> re;
    hn::Vec<decltype(d)> im;
    hn::LoadInterleaved2(d, from + 2 * x, re, im);
    const auto in_row = hn::FirstN(d, count - x);
    const auto value = hn::IfThenElseZero(in_row, value_of<kind>(d, re, im));
    sum = hn::Add(sum, value);
    squares = hn::MulAdd(value, value, squares);
    hn::StoreU(value, d, values + x);

    const auto position = hn::Mul(hn::Sub(value, hn::Set(d, binning.low)), hn::Set(d, binning.scale));
    const auto end = hn::Set(d, static_cast<float>(binning.bins));
    const auto outside = hn::Or(hn::Lt(position, hn::Zero(d)), hn::Ge(position, end));
    clipped += hn::CountTrue(d, hn::And(outside, in_row));
    const auto clamped = hn::Min(hn::Max(position, hn::Zero(d)), end);
    const auto bin = hn::Min(hn::ConvertTo(d32, clamped), hn::Set(d32, binning.bins - 1));
    hn::StoreU(bin, d32, bins + x);
  }
  return {hn::GetLane(hn::SumOfLanes(d, sum)), hn::GetLane(hn::SumOfLanes(d, squares)),
          static_cast<std::uint32_t>(clipped)};
}

RowSums BinRow(float* values, std::int32_t* bins, const std::complex<float>* row, std::size_t count,
               const Binning& binning) {
  switch (binning.value) {
    case ValueKind::log1p_db:
      return bin_row_as<ValueKind::log1p_db>(values, bins, row, count, binning);
    case ValueKind::db:
      return bin_row_as<ValueKind::db>(values, bins, row, count, binning);
    case ValueKind::linear:
      break;
  }
  return bin_row_as<ValueKind::linear>(values, bins, row, count, binning);
}

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(SmoothVertically);
HWY_EXPORT(SmoothHorizontally);
HWY_EXPORT(BinRow);
HWY_EXPORT(TargetName);

PlainKernels plain_kernels() {
  return {&HWY_DYNAMIC_DISPATCH(SmoothVertically), &HWY_DYNAMIC_DISPATCH(SmoothHorizontally),
          &HWY_DYNAMIC_DISPATCH(BinRow), HWY_DYNAMIC_DISPATCH(TargetName)()};
}

}  // namespace slidestream
#endif
