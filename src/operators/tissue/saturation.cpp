#include <cstddef>
#include <cstdint>

#include "operators/tissue/tissue.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/tissue/saturation.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slidestream::operators::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

std::size_t SaturationRow(std::uint8_t*, const std::uint8_t*, std::size_t) { return 0; }

#else

namespace hn = hwy::HWY_NAMESPACE;

using Byte = hn::ScalableTag<std::uint8_t>;
using Int32 = hn::ScalableTag<std::int32_t>;
using Float = hn::ScalableTag<float>;
using Quarter = hn::Rebind<std::uint8_t, Int32>;
constexpr Byte d8;
constexpr Int32 d32;
constexpr Float df;
constexpr Quarter quarter;

/// A quotient of whole numbers below 2^16 and 2^8 lies at least 1/255 below the next whole number, or is one: float32's
/// division, correctly rounded, has the right whole part.
HWY_INLINE hn::Vec<Quarter> saturations(hn::Vec<Quarter> largest, hn::Vec<Quarter> smallest) {
  const auto high = hn::PromoteTo(d32, largest);
  const auto difference = hn::Sub(high, hn::PromoteTo(d32, smallest));
  const auto scaled = hn::Sub(hn::ShiftLeft<8>(difference), difference);
  const auto dividend = hn::ConvertTo(df, hn::Add(scaled, hn::ShiftRight<1>(high)));
  const auto divisor = hn::ConvertTo(df, hn::Max(high, hn::Set(d32, 1)));
  const auto quotient = hn::ConvertTo(d32, hn::Div(dividend, divisor));
  return hn::DemoteTo(quarter, hn::IfThenElseZero(hn::Gt(high, hn::Set(d32, most_black)), quotient));
}

/// All of `n` pixels or none; returns how many.
std::size_t SaturationRow(std::uint8_t* HWY_RESTRICT out, const std::uint8_t* HWY_RESTRICT rgb, std::size_t n) {
  const std::size_t lanes = hn::Lanes(d8);
  if (n < lanes) return 0;
  HWY_ALIGN std::uint8_t largest[hn::MaxLanes(d8)];
  HWY_ALIGN std::uint8_t smallest[hn::MaxLanes(d8)];
  for (std::size_t x = 0; x < n; x += lanes) {
    x = HWY_MIN(x, n - lanes);
    hn::Vec<Byte> r, g, b;
    hn::LoadInterleaved3(d8, rgb + 3 * x, r, g, b);
    hn::Store(hn::Max(hn::Max(r, g), b), d8, largest);
    hn::Store(hn::Min(hn::Min(r, g), b), d8, smallest);
    for (std::size_t part = 0; part < lanes; part += lanes / 4) {
      const auto s = saturations(hn::LoadU(quarter, largest + part), hn::LoadU(quarter, smallest + part));
      hn::StoreU(s, quarter, out + x + part);
    }
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

HWY_EXPORT(SaturationRow);

}  // namespace

void saturation(const HostView& out, const ConstHostView& in) {
  if (out.format != luminance_format) throw std::invalid_argument("saturation is one channel of uint8");
  require_input(out, in, {}, rgb_format);
  const auto width = static_cast<std::size_t>(out.rect.width);
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    const std::uint8_t* from = in.row<const std::uint8_t>(y) + 3 * (out.rect.x - in.rect.x);
    auto* to = out.row<std::uint8_t>(y);
    for (std::size_t x = HWY_DYNAMIC_DISPATCH(SaturationRow)(to, from, width); x < width; ++x) {
      const auto [smallest, largest] = std::minmax({from[3 * x], from[3 * x + 1], from[3 * x + 2]});
      to[x] =
          static_cast<std::uint8_t>(largest <= most_black ? 0 : (255 * (largest - smallest) + largest / 2) / largest);
    }
  }
}

}  // namespace slidestream::operators
#endif
