#include "slide/pixels.hpp"

#include <cstring>

#include "codec/ycbcr.hpp"
#include "slide/luminance.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "slide/pixels.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// The formula of `ycbcr_to_rgb` for whole vectors of interleaved pixels; returns how many pixels that were.
std::int64_t YcbcrToRgb(std::uint8_t* HWY_RESTRICT to, const std::uint8_t* HWY_RESTRICT from, std::int64_t count) {
  // A quarter of the bytes that fit a vector, so that the 32-bit lanes fill it.
  const hn::ScalableTag<std::int32_t> d32;
  const hn::Rebind<std::uint8_t, decltype(d32)> d8;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d32));
  const auto half = hn::Set(d32, 32768);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<decltype(d8)> coded_y, coded_cb, coded_cr;
    hn::LoadInterleaved3(d8, from + 3 * i, coded_y, coded_cb, coded_cr);
    const auto y = hn::PromoteTo(d32, coded_y);
    const auto cb = hn::Sub(hn::PromoteTo(d32, coded_cb), hn::Set(d32, 128));
    const auto cr = hn::Sub(hn::PromoteTo(d32, coded_cr), hn::Set(d32, 128));
    const auto red = hn::ShiftRight<16>(hn::Add(hn::Mul(hn::Set(d32, 91881), cr), half));
    const auto green = hn::ShiftRight<16>(
        hn::Add(hn::Add(hn::Mul(hn::Set(d32, -22554), cb), hn::Mul(hn::Set(d32, -46802), cr)), half));
    const auto blue = hn::ShiftRight<16>(hn::Add(hn::Mul(hn::Set(d32, 116130), cb), half));
    // Demoting clamps to 0..255.
    hn::StoreInterleaved3(hn::DemoteTo(d8, hn::Add(y, red)), hn::DemoteTo(d8, hn::Add(y, green)),
                          hn::DemoteTo(d8, hn::Add(y, blue)), d8, to + 3 * i);
  }
  return i;
}

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(YcbcrToRgb);

void interleaved_to_rgb(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples,
                        Colour colour) noexcept {
  if (count <= 0) return;
  const std::uint8_t* const end = from + count * samples;
  if (samples >= 3 && colour == Colour::ycbcr) {
    const std::int64_t done = samples == 3 ? HWY_DYNAMIC_DISPATCH(YcbcrToRgb)(to, from, count) : 0;
    to += 3 * done;
    for (from += 3 * done; from != end; from += samples, to += 3) {
      const Rgb rgb = ycbcr_to_rgb(from[0], from[1], from[2]);
      to[0] = rgb.red;
      to[1] = rgb.green;
      to[2] = rgb.blue;
    }
  } else if (samples == 3 && colour == Colour::rgb) {
    std::memcpy(to, from, static_cast<std::size_t>(3 * count));
  } else if (samples > 3 && colour == Colour::rgb) {
    for (; from != end; from += samples, to += 3) std::memcpy(to, from, 3);
  } else {
    const std::uint8_t flip = colour == Colour::grey_inverted ? 255 : 0;
    for (; from != end; from += samples, to += 3) to[0] = to[1] = to[2] = static_cast<std::uint8_t>(*from ^ flip);
  }
}

void interleaved_to_pixels(std::uint8_t* to, const std::uint8_t* from, std::int64_t count, int samples, Colour colour,
                           const PixelFormat& format) noexcept {
  if (format == rgb_format) return interleaved_to_rgb(to, from, count, samples, colour);
  interleaved_to_luminance(to, from, count, samples, colour);
}

}  // namespace slidestream
#endif
