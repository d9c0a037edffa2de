// Smoothing of a band of columns, two rows at a time on the way down. Included once per vector unit.
#if defined(SLIDESTREAM_SPECTRUM_SMOOTHER_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIDESTREAM_SPECTRUM_SMOOTHER_INL_HPP
#undef SLIDESTREAM_SPECTRUM_SMOOTHER_INL_HPP
#else
#define SLIDESTREAM_SPECTRUM_SMOOTHER_INL_HPP
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "spectrum/fft16-inl.hpp"
#include "spectrum/highway_layout.hpp"
#include "spectrum/smoothing.hpp"

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {

template <int distance>
using Distance = std::integral_constant<int, distance>;

/// Smooths columns [begin, begin + width) of a plane from row `top` down, each pixel once, less the luminance offset
/// and halved (the row transform doubles). Rows below `bottom` + radius are never touched.
class Smoother {
 public:
  Smoother(const LuminancePlane& plane, std::int64_t begin, std::int64_t width, std::int64_t top, std::int64_t bottom,
           const FastParameters& parameters, FastWorkspace& work)
      : plane_(plane),
        begin_(begin),
        width_(static_cast<std::size_t>(width)),
        inside_(begin - margin >= plane.x0 && begin + width + margin <= plane.x0 + plane.width),
        last_row_(bottom + fast_radius - 1),
        taps_(parameters.taps),
        ring_(work.ring.data()),
        converted_(work.converted.data()),
        edge_(work.edge.data()) {
    for (std::int64_t row = top - fast_radius; row < top + fast_radius; ++row) smooth_along(row);
  }

  /// Rows `y` and `y + 1`; the calls before were for the rows above.
  HWY_NOINLINE void next_pair(float* HWY_RESTRICT first, float* HWY_RESTRICT second, std::int64_t y) {
    smooth_along(y + fast_radius);
    smooth_along(y + fast_radius + 1);
    const Floats tap0 = all(0.5F * taps_[0]);
    const Floats tap1 = all(0.5F * taps_[1]);
    const Floats tap2 = all(0.5F * taps_[2]);
    const Floats tap3 = all(0.5F * taps_[3]);
    const float* rows[8];
    for (std::int64_t i = 0; i < 8; ++i) rows[i] = ring_row(y - fast_radius + i);
    for (std::size_t x = 0; x < width_; x += lanes) {
      Floats v[8];
      for (int i = 0; i < 8; ++i) v[i] = load(rows[i] + x);
      const auto smoothed = [&](int i) SLIDESTREAM_INLINE_LAMBDA {
        Floats sum = hn::Mul(tap0, v[i]);
        sum = hn::MulAdd(tap1, hn::Add(v[i - 1], v[i + 1]), sum);
        sum = hn::MulAdd(tap2, hn::Add(v[i - 2], v[i + 2]), sum);
        return hn::MulAdd(tap3, hn::Add(v[i - 3], v[i + 3]), sum);
      };
      store(smoothed(3), first + x);
      store(smoothed(4), second + x);
    }
  }

 private:
  static constexpr std::int64_t margin = 16;  ///< columns kept on both sides, so that vectors stay aligned

  float* ring_row(std::int64_t row) const { return ring_ + static_cast<std::size_t>(row & 7) * ring_pitch; }

  /// The image's row, mirrored at its top and bottom. Where the plane ends short of a row, that row has a tap of zero,
  /// and any other will do.
  const std::uint8_t* plane_row(std::int64_t row) const {
    row = std::clamp<std::int64_t>(mirrored(row, plane_.image_height) - plane_.y0, 0, plane_.height - 1);
    return plane_.data + row * plane_.pitch;
  }

  /// Columns begin - margin to end + margin of a row: what the plane has, and mirror images as far as a tap may reach.
  const std::uint8_t* with_mirrored_ends(const std::uint8_t* row) const {
    const std::int64_t end = begin_ + static_cast<std::int64_t>(width_);
    const std::int64_t from = std::max(begin_ - margin, plane_.x0);
    const std::int64_t to = std::min(end + margin, plane_.x0 + plane_.width);
    std::uint8_t* line = edge_ + (margin - begin_);  // line[x] is column x of the image
    std::memcpy(line + from, row + (from - plane_.x0), static_cast<std::size_t>(to - from));
    const auto column = [&](std::int64_t x) {
      return row[std::clamp<std::int64_t>(mirrored(x, plane_.image_width) - plane_.x0, 0, plane_.width - 1)];
    };
    for (std::int64_t x = begin_ - fast_radius; x < from; ++x) line[x] = column(x);
    for (std::int64_t x = to; x < end + fast_radius; ++x) line[x] = column(x);
    return edge_;
  }

  /// One row of the plane, smoothed along x, into the ring.
  HWY_NOINLINE void smooth_along(std::int64_t row) {
    if (row > last_row_) return;
    // The processor's own prefetching stops at the ends of pages, and every row lies in another page.
    const std::uint8_t* ahead = plane_row(std::min(row + 8, last_row_)) + (begin_ - plane_.x0);
    for (std::size_t x = 0; x < width_; x += 64) hwy::Prefetch(ahead + x);

    const std::uint8_t* pixels = plane_row(row);
    pixels = inside_ ? pixels + (begin_ - margin - plane_.x0) : with_mirrored_ends(pixels);
    const hn::Rebind<std::uint8_t, IntTag> byte_tag;
    const auto converted = [&](std::size_t x) SLIDESTREAM_INLINE_LAMBDA {
      return hn::ConvertTo(float_tag, hn::PromoteTo(int_tag, hn::LoadU(byte_tag, pixels + x)));
    };
    const Floats tap0 = all(taps_[0]);
    const Floats tap1 = all(taps_[1]);
    const Floats tap2 = all(taps_[2]);
    const Floats tap3 = all(taps_[3]);
    const Floats offset = all(-static_cast<float>(luminance_offset));
    float* to = ring_row(row);
    const auto smoothed = [&](auto pair, Floats middle) SLIDESTREAM_INLINE_LAMBDA {
      Floats sum = hn::MulAdd(tap0, middle, offset);
      sum = hn::MulAdd(tap1, pair(Distance<1>()), sum);
      sum = hn::MulAdd(tap2, pair(Distance<2>()), sum);
      return hn::MulAdd(tap3, pair(Distance<3>()), sum);
    };
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    // Unaligned loads of whole cache lines would all cross into the next: neighbours come from registers instead.
    // (Highway has no name for shifts across two whole vectors.)
    const auto shifted = [](Floats high, Floats low, auto count) SLIDESTREAM_INLINE_LAMBDA {
      return Floats{_mm512_castsi512_ps(
          _mm512_alignr_epi32(_mm512_castps_si512(high.raw), _mm512_castps_si512(low.raw), decltype(count)::value))};
    };
    Floats left = converted(static_cast<std::size_t>(margin) - lanes);
    Floats middle = converted(static_cast<std::size_t>(margin));
    for (std::size_t x = 0; x < width_; x += lanes) {
      const Floats right = converted(static_cast<std::size_t>(margin) + x + lanes);
      const auto pair = [&](auto distance) SLIDESTREAM_INLINE_LAMBDA {
        constexpr int count = decltype(distance)::value;
        return hn::Add(shifted(middle, left, Distance<16 - count>()), shifted(right, middle, distance));
      };
      store(smoothed(pair, middle), to + x);
      left = middle;
      middle = right;
    }
#else
    const std::size_t count = width_ + static_cast<std::size_t>(margin) + lanes;
    for (std::size_t x = static_cast<std::size_t>(margin) - lanes; x < count; x += lanes) {
      store(converted(x), converted_ + x);
    }
    for (std::size_t x = 0; x < width_; x += lanes) {
      const float* from = converted_ + margin + x;
      const auto pair = [&](auto distance) SLIDESTREAM_INLINE_LAMBDA {
        return hn::Add(load_unaligned(from - decltype(distance)::value),
                       load_unaligned(from + decltype(distance)::value));
      };
      store(smoothed(pair, load(from)), to + x);
    }
#endif
  }

  const LuminancePlane& plane_;
  const std::int64_t begin_;
  const std::size_t width_;
  const bool inside_;  ///< margins and all
  const std::int64_t last_row_;
  const std::array<float, fast_radius + 1> taps_;
  float* const ring_;
  float* const converted_;
  std::uint8_t* const edge_;
};

}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
