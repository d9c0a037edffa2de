#include "image/halve.hpp"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "image/halve.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

std::int64_t Halve(const std::uint8_t* /*upper*/, const std::uint8_t* /*lower*/, std::uint16_t* /*sums*/,
                   std::uint8_t* /*pixels*/, std::int64_t /*pixels_wide*/, int /*channels*/) {
  return 0;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::ScalableTag<std::uint8_t>;
using Sums = hn::Repartition<std::uint16_t, Bytes>;
using HalfBytes = hn::Half<Bytes>;

/// Sums of neighbouring bytes.
HWY_INLINE hn::Vec<Sums> pair_sums(hn::Vec<Bytes> bytes) {
  const Sums d;
  const auto pairs = hn::BitCast(d, bytes);
  return hn::Add(hn::And(pairs, hn::Set(d, 0xFF)), hn::ShiftRight<8>(pairs));
}

HWY_INLINE hn::Vec<HalfBytes> means(hn::Vec<Sums> sums) {
  const Sums d;
  return hn::DemoteTo(HalfBytes(),
                      hn::BitCast(hn::RebindToSigned<Sums>(), hn::ShiftRight<2>(hn::Add(sums, hn::Set(d, 2)))));
}

std::int64_t Halve(const std::uint8_t* upper, const std::uint8_t* lower, std::uint16_t* sums, std::uint8_t* pixels,
                   std::int64_t pixels_wide, int channels) {
  const Bytes bytes;
  const Sums wide;
  const HalfBytes half;
  const auto step = static_cast<std::int64_t>(hn::Lanes(wide));
  std::int64_t x = 0;
  if (channels == 1) {
    for (; x + step <= pixels_wide; x += step) {
      const auto sum = hn::Add(pair_sums(hn::LoadU(bytes, upper + 2 * x)), pair_sums(hn::LoadU(bytes, lower + 2 * x)));
      hn::StoreU(sum, wide, sums + x);
      hn::StoreU(means(sum), half, pixels + x);
    }
  } else if (channels == 3) {
    for (; x + step <= pixels_wide; x += step) {
      hn::Vec<Bytes> a[3];
      hn::Vec<Bytes> b[3];
      hn::LoadInterleaved3(bytes, upper + 6 * x, a[0], a[1], a[2]);
      hn::LoadInterleaved3(bytes, lower + 6 * x, b[0], b[1], b[2]);
      const auto red = hn::Add(pair_sums(a[0]), pair_sums(b[0]));
      const auto green = hn::Add(pair_sums(a[1]), pair_sums(b[1]));
      const auto blue = hn::Add(pair_sums(a[2]), pair_sums(b[2]));
      hn::StoreInterleaved3(red, green, blue, wide, sums + 3 * x);
      hn::StoreInterleaved3(means(red), means(green), means(blue), half, pixels + 3 * x);
    }
  }
  return x;
}

#endif

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(Halve);

std::int64_t halve(const std::uint8_t* upper, const std::uint8_t* lower, std::uint16_t* sums, std::uint8_t* pixels,
                   std::int64_t pixels_wide, int channels) noexcept {
  return HWY_DYNAMIC_DISPATCH(Halve)(upper, lower, sums, pixels, pixels_wide, channels);
}

}  // namespace slidestream
#endif
