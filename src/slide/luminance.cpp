#include "slide/luminance.hpp"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "slide/luminance.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The formula of `luminance` for 8 bits of red, green and blue in each 32-bit lane.
template <class V>
HWY_INLINE V Weigh(V red, V green, V blue) {
  const hn::DFromV<V> d;
  const V sum = hn::Add(hn::Mul(hn::Set(d, 19595), red), hn::Mul(hn::Set(d, 38470), green));
  return hn::ShiftRight<16>(hn::Add(sum, hn::Add(hn::Mul(hn::Set(d, 7471), blue), hn::Set(d, 32768))));
}

/// Whole vectors of interleaved RGB or RGBA pixels; returns how many pixels that were.
template <int samples>
std::int64_t RgbToLuminance(std::uint8_t* HWY_RESTRICT to, const std::uint8_t* HWY_RESTRICT from, std::int64_t count) {
  // A quarter of the bytes that fit a vector, so that the 32-bit lanes fill it.
  const hn::ScalableTag<std::int32_t> d32;
  const hn::Rebind<std::uint8_t, decltype(d32)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d32));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<decltype(d8)> red, green, blue;
    if constexpr (samples == 3) {
      hn::LoadInterleaved3(d8, from + i * samples, red, green, blue);
    } else {
      hn::Vec<decltype(d8)> extra;
      hn::LoadInterleaved4(d8, from + i * samples, red, green, blue, extra);
    }
    const auto y = Weigh(hn::PromoteTo(d32, red), hn::PromoteTo(d32, green), hn::PromoteTo(d32, blue));
    hn::StoreU(hn::DemoteTo(d8, y), d8, to + i);
  }
  return i;
}

std::int64_t Rgb3ToLuminance(std::uint8_t* to, const std::uint8_t* from, std::int64_t count) {
  return RgbToLuminance<3>(to, from, count);
}
std::int64_t Rgb4ToLuminance(std::uint8_t* to, const std::uint8_t* from, std::int64_t count) {
  return RgbToLuminance<4>(to, from, count);
}

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(Rgb3ToLuminance);
HWY_EXPORT(Rgb4ToLuminance);

void interleaved_to_luminance(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples,
                              Colour colour) noexcept {
  if (count <= 0) return;
  if (colour == Colour::rgb && samples >= 3) {
    std::int64_t done = 0;
    if (samples == 3) done = HWY_DYNAMIC_DISPATCH(Rgb3ToLuminance)(to, from, count);
    if (samples == 4) done = HWY_DYNAMIC_DISPATCH(Rgb4ToLuminance)(to, from, count);
    for (std::int64_t i = done; i < count; ++i) {
      const std::uint8_t* pixel = from + i * samples;
      to[i] = luminance(pixel[0], pixel[1], pixel[2]);
    }
    return;
  }
  if (samples == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(count));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * samples];
  }
  if (colour == Colour::grey_inverted) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(255 - to[i]);
  }
}

}  // namespace slidestream
#endif
