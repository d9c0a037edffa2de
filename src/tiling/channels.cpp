#include "tiling/channels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tiling/channels.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Whole vectors; returns how many pixels that were.
std::int64_t SplitChannels(std::uint8_t* HWY_RESTRICT red, std::uint8_t* HWY_RESTRICT green,
                           std::uint8_t* HWY_RESTRICT blue, const std::uint8_t* HWY_RESTRICT rgb, std::int64_t count) {
  const hn::ScalableTag<std::uint8_t> bytes;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(bytes));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::Vec<decltype(bytes)> r, g, b;
    hn::LoadInterleaved3(bytes, rgb + 3 * i, r, g, b);
    hn::StoreU(r, bytes, red + i);
    hn::StoreU(g, bytes, green + i);
    hn::StoreU(b, bytes, blue + i);
  }
  return i;
}

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(SplitChannels);

void split_channels(std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue, const std::uint8_t* rgb,
                    std::int64_t count) noexcept {
  for (std::int64_t i = HWY_DYNAMIC_DISPATCH(SplitChannels)(red, green, blue, rgb, count); i < count; ++i) {
    red[i] = rgb[3 * i];
    green[i] = rgb[3 * i + 1];
    blue[i] = rgb[3 * i + 2];
  }
}

}  // namespace slidestream
#endif  // HWY_ONCE
