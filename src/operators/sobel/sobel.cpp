#include "operators/sobel/sobel.hpp"

#include <cmath>
#include <cstddef>

#include "image/mirror.hpp"
#include "image/prefetch.hpp"
#include "operators/sobel/sobel_pixel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operators/sobel/sobel.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slidestream::operators::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

std::size_t SobelRow8(std::uint8_t*, const std::uint8_t*, const std::uint8_t*, const std::uint8_t*, std::size_t) {
  return 0;
}
std::size_t SobelRowFloat(float*, const std::uint8_t*, const std::uint8_t*, const std::uint8_t*, std::size_t) {
  return 0;
}

#else

namespace hn = hwy::HWY_NAMESPACE;

using Int16 = hn::ScalableTag<std::int16_t>;
using Int32 = hn::ScalableTag<std::int32_t>;
using Float = hn::ScalableTag<float>;
constexpr Int16 d16;
constexpr Int32 d32;
constexpr Float df;

struct Gradient {
  hn::Vec<Int16> x, y;
};

HWY_INLINE hn::Vec<Int16> widened(const std::uint8_t* from) {
  return hn::PromoteTo(d16, hn::LoadU(hn::Rebind<std::uint8_t, Int16>(), from));
}

HWY_INLINE Gradient gradient_at(const std::uint8_t* up, const std::uint8_t* mid, const std::uint8_t* down) {
  // Differences and sums along the two diagonals hold the corners of both kernels.
  const auto falling = hn::Sub(widened(down + 1), widened(up - 1));
  const auto rising = hn::Sub(widened(up + 1), widened(down - 1));
  const auto across = hn::Sub(widened(mid + 1), widened(mid - 1));
  const auto along = hn::Sub(widened(down), widened(up));
  return {hn::Add(hn::Add(falling, rising), hn::Add(across, across)),
          hn::Add(hn::Sub(falling, rising), hn::Add(along, along))};
}

/// a_i b_i + a_(i+1) b_(i+1) of neighbouring lanes.
HWY_INLINE hn::Vec<Int32> pair_products(hn::Vec<Int16> a, hn::Vec<Int16> b) {
  auto odd = hn::Zero(d32);
  const auto even = hn::ReorderWidenMulAccumulate(d32, a, b, hn::Zero(d32), odd);
  return hn::RearrangeToOddPlusEven(even, odd);
}

/// sqrt(s / 32): s / 32 is exact, and the root is correctly rounded.
HWY_INLINE hn::Vec<Float> steepness(hn::Vec<Int32> s) {
  return hn::Sqrt(hn::Mul(hn::ConvertTo(df, s), hn::Set(df, sobel_scale)));
}

/// Below 256 a root that is less than a whole number and a half is so by more than float32's rounding: the sum with 1/2
/// never reaches the next whole number wrongly.
HWY_INLINE hn::Vec<Int32> rounded(hn::Vec<Float> root) { return hn::ConvertTo(d32, hn::Add(root, hn::Set(df, 0.5F))); }

/// Both rows do as many pixels as vectors allow, and return how many: all or none.
std::size_t SobelRow8(std::uint8_t* out, const std::uint8_t* up, const std::uint8_t* mid, const std::uint8_t* down,
                      std::size_t n) {
  const std::size_t lanes = hn::Lanes(d16);
  if (n < lanes) return 0;
  for (std::size_t x = 0; x < n; x += lanes) {
    x = HWY_MIN(x, n - lanes);
    const Gradient g = gradient_at(up + x, mid + x, down + x);
    const auto lower = hn::InterleaveLower(d16, g.x, g.y);
    const auto upper = hn::InterleaveUpper(d16, g.x, g.y);
    // Narrowing takes blocks of 128 bits in turn, as interleaving gave them.
    const auto whole = hn::ReorderDemote2To(d16, rounded(steepness(pair_products(lower, lower))),
                                            rounded(steepness(pair_products(upper, upper))));
    const hn::Rebind<std::uint8_t, Int16> d8;
    hn::StoreU(hn::DemoteTo(d8, whole), d8, out + x);
  }
  return n;
}

std::size_t SobelRowFloat(float* out, const std::uint8_t* up, const std::uint8_t* mid, const std::uint8_t* down,
                          std::size_t n) {
  const std::size_t lanes = hn::Lanes(d16);
  if (n < lanes) return 0;
  const hn::Half<Int16> half;
  const auto square_sum = [&](hn::Vec<hn::Half<Int16> > gx, hn::Vec<hn::Half<Int16> > gy) HWY_ATTR {
    const auto x = hn::PromoteTo(d32, gx);
    const auto y = hn::PromoteTo(d32, gy);
    return hn::Add(hn::Mul(x, x), hn::Mul(y, y));
  };
  for (std::size_t x = 0; x < n; x += lanes) {
    x = HWY_MIN(x, n - lanes);
    const Gradient g = gradient_at(up + x, mid + x, down + x);
    const auto lower = square_sum(hn::LowerHalf(half, g.x), hn::LowerHalf(half, g.y));
    const auto upper = square_sum(hn::UpperHalf(half, g.x), hn::UpperHalf(half, g.y));
    hn::StoreU(steepness(lower), df, out + x);
    hn::StoreU(steepness(upper), df, out + x + lanes / 2);
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

HWY_EXPORT(SobelRow8);
HWY_EXPORT(SobelRowFloat);

std::size_t vector_row(std::uint8_t* out, const std::uint8_t* up, const std::uint8_t* mid, const std::uint8_t* down,
                       std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(SobelRow8)(out, up, mid, down, n);
}
std::size_t vector_row(float* out, const std::uint8_t* up, const std::uint8_t* mid, const std::uint8_t* down,
                       std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(SobelRowFloat)(out, up, mid, down, n);
}

void store(std::uint8_t* to, float root) { *to = static_cast<std::uint8_t>(root + 0.5F); }
void store(float* to, float root) { *to = root; }

/// One output row. `up`, `mid` and `down` point at the sample of column 0 of the image, whether or not they hold it.
template <class T>
void sobel_row(T* out, const std::uint8_t* up, const std::uint8_t* mid, const std::uint8_t* down, const Rect& rect,
               std::int64_t width) {
  const auto pixel = [&](std::int64_t x) {
    const std::int64_t left = mirror_symmetric(x - 1, width);
    const std::int64_t right = mirror_symmetric(x + 1, width);
    const auto column = [&](std::int64_t at) { return sobel_column(up[at], mid[at], down[at], 1); };
    const std::int32_t s = sobel_square(sobel_gradients(column(left), column(x), column(right), 1));
    store(out + (x - rect.x), std::sqrt(static_cast<float>(s) * sobel_scale));
  };
  // Columns with both neighbours.
  std::int64_t x = std::max<std::int64_t>(rect.x, 1);
  const std::int64_t end = std::min(rect.right(), width - 1);
  if (rect.x == 0) pixel(0);
  if (x < end) {
    x += static_cast<std::int64_t>(
        vector_row(out + (x - rect.x), up + x, mid + x, down + x, static_cast<std::size_t>(end - x)));
  }
  for (; x < rect.right(); ++x) pixel(x);
}

template <class T>
void sobel_rows(const HostView& out, const ConstHostView& in) {
  const auto row = [&](std::int64_t y) {
    return in.row<const std::uint8_t>(mirror_symmetric(y, in.image.height)) - in.rect.x;
  };
  const auto width = static_cast<std::size_t>(out.rect.width);
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    prefetch(row(std::min(y + 4, in.rect.bottom() - 1)) + out.rect.x, width);
    prefetch(out.row<T>(std::min(y + 3, out.rect.bottom() - 1)), width * sizeof(T));
    sobel_row(out.row<T>(y), row(y - 1), row(y), row(y + 1), out.rect, in.image.width);
  }
}

}  // namespace

void sobel(const HostView& out, const ConstHostView& in) {
  require_input(out, in, sobel_border, luminance_format);
  if (out.format == PixelFormat{SampleType::uint8, 1}) {
    sobel_rows<std::uint8_t>(out, in);
  } else if (out.format == PixelFormat{SampleType::float32, 1}) {
    sobel_rows<float>(out, in);
  } else {
    throw std::invalid_argument("sobel makes one channel of uint8 or float32");
  }
}

}  // namespace slidestream::operators
#endif
