// The DFTs of 2 to 16 points that all transforms are made of. Included once per vector unit.
#if defined(SLIDESTREAM_SPECTRUM_FFT16_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIDESTREAM_SPECTRUM_FFT16_INL_HPP
#undef SLIDESTREAM_SPECTRUM_FFT16_INL_HPP
#else
#define SLIDESTREAM_SPECTRUM_FFT16_INL_HPP
#endif

#include <hwy/highway.h>

/// For lambdas in the inner loops: they are steps of one kernel, never calls.
#ifndef SLIDESTREAM_INLINE_LAMBDA
#define SLIDESTREAM_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t lanes = HWY_MIN(HWY_MAX_BYTES / sizeof(float), 16);
using FloatTag = hn::CappedTag<float, lanes>;
using IntTag = hn::RebindToSigned<FloatTag>;
using Floats = hn::Vec<FloatTag>;
constexpr FloatTag float_tag;
constexpr IntTag int_tag;

HWY_INLINE Floats load(const float* from) { return hn::Load(float_tag, from); }
HWY_INLINE Floats load_unaligned(const float* from) { return hn::LoadU(float_tag, from); }
HWY_INLINE void store(Floats v, float* to) { hn::Store(v, float_tag, to); }
HWY_INLINE Floats all(float v) { return hn::Set(float_tag, v); }

/// One complex number per lane.
struct Complex {
  // Implicit constructors lack the vector unit's attributes, and GCC refuses to inline Arm's vectors into them.
  HWY_INLINE Complex() {}
  HWY_INLINE Complex(Floats real, Floats imaginary) : re(real), im(imaginary) {}

  Floats re, im;
};
HWY_INLINE Complex operator+(Complex a, Complex b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
HWY_INLINE Complex operator-(Complex a, Complex b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }
HWY_INLINE Complex plus_i(Complex a, Complex b) { return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)}; }
HWY_INLINE Complex minus_i(Complex a, Complex b) { return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)}; }
HWY_INLINE Complex times(Complex a, Floats re, Floats im) {
  return {hn::MulSub(a.re, re, hn::Mul(a.im, im)), hn::MulAdd(a.re, im, hn::Mul(a.im, re))};
}

HWY_INLINE Complex turn_45(Complex a) { return {hn::Add(a.re, a.im), hn::Sub(a.im, a.re)}; }  // (1 - i) a
// a + f b, a - f b, a - i f b, a + i f b
HWY_INLINE Complex plus(Complex a, Floats f, Complex b) {
  return {hn::MulAdd(f, b.re, a.re), hn::MulAdd(f, b.im, a.im)};
}
HWY_INLINE Complex minus(Complex a, Floats f, Complex b) {
  return {hn::NegMulAdd(f, b.re, a.re), hn::NegMulAdd(f, b.im, a.im)};
}
HWY_INLINE Complex minus_i_times(Complex a, Floats f, Complex b) {
  return {hn::MulAdd(f, b.im, a.re), hn::NegMulAdd(f, b.re, a.im)};
}
HWY_INLINE Complex plus_i_times(Complex a, Floats f, Complex b) {
  return {hn::NegMulAdd(f, b.im, a.re), hn::MulAdd(f, b.re, a.im)};
}

/// 4-point DFTs, one per lane, of samples `in(first + n * step)`.
template <class In>
HWY_INLINE void dft4(Complex* x, In in, int first, int step) {
  const Complex a = in(first);
  const Complex c = in(first + 2 * step);
  const Complex b = in(first + step);
  const Complex d = in(first + 3 * step);
  const Complex even = a + c;
  const Complex even_difference = a - c;
  const Complex odd = b + d;
  const Complex odd_difference = b - d;
  x[0] = even + odd;
  x[1] = minus_i(even_difference, odd_difference);
  x[2] = even - odd;
  x[3] = plus_i(even_difference, odd_difference);
}

/// 8-point DFTs, as dft4.
template <class In>
HWY_INLINE void dft8(Complex* x, In in, int first, int step) {
  const Floats half_root = all(0.70710678118654752F);  // cos 45 degrees
  Complex even[4];
  Complex odd[4];
  dft4(even, in, first, 2 * step);
  dft4(odd, in, first + step, 2 * step);
  x[0] = even[0] + odd[0];
  x[4] = even[0] - odd[0];
  const Complex one = turn_45(odd[1]);
  x[1] = plus(even[1], half_root, one);
  x[5] = minus(even[1], half_root, one);
  x[2] = minus_i(even[2], odd[2]);
  x[6] = plus_i(even[2], odd[2]);
  const Complex three = turn_45(odd[3]);  // w^3 = -i w
  x[3] = minus_i_times(even[3], half_root, three);
  x[7] = plus_i_times(even[3], half_root, three);
}

/// 16-point DFTs, one per lane, decimated in time: `in(n)` gives sample n, `out(k, X)` takes coefficient k, in an order
/// that keeps few of them waiting. A rotation by w = c (1 - i t) is done as (1 - i t) first, and its factor c is merged
/// into the additions that follow, so that every butterfly costs four or six instructions, 148 in all.
template <class In, class Out>
HWY_INLINE void dft16(In in, Out out) {
  const Floats half_root = all(0.70710678118654752F);           // cos 45 degrees
  const Floats cosine = all(0.92387953251128674F);              // cos 22.5 degrees
  const Floats tangent = all(0.41421356237309503F);             // tan 22.5 degrees
  const auto turn = [&](Complex a) SLIDESTREAM_INLINE_LAMBDA {  // (1 - i t) a
    return Complex{hn::MulAdd(tangent, a.im, a.re), hn::NegMulAdd(tangent, a.re, a.im)};
  };
  const auto turn_back = [&](Complex a) SLIDESTREAM_INLINE_LAMBDA {  // (1 + i t) a
    return Complex{hn::NegMulAdd(tangent, a.im, a.re), hn::MulAdd(tangent, a.re, a.im)};
  };

  Complex even[8];
  Complex odd[8];
  dft8(even, in, 0, 2);
  dft8(odd, in, 1, 2);
  out(0, even[0] + odd[0]);
  out(8, even[0] - odd[0]);
  out(4, minus_i(even[4], odd[4]));
  out(12, plus_i(even[4], odd[4]));
  const Complex two = turn_45(odd[2]);
  out(2, plus(even[2], half_root, two));
  out(10, minus(even[2], half_root, two));
  const Complex six = turn_45(odd[6]);  // w^6 = -i w^2
  out(6, minus_i_times(even[6], half_root, six));
  out(14, plus_i_times(even[6], half_root, six));
  const Complex one = turn(odd[1]);
  out(1, plus(even[1], cosine, one));
  out(9, minus(even[1], cosine, one));
  const Complex five = turn(odd[5]);  // w^5 = -i w
  out(5, minus_i_times(even[5], cosine, five));
  out(13, plus_i_times(even[5], cosine, five));
  const Complex three = turn_back(odd[3]);  // w^3 = -i / w
  out(3, minus_i_times(even[3], cosine, three));
  out(11, plus_i_times(even[3], cosine, three));
  const Complex seven = turn_back(odd[7]);  // w^7 = -1 / w
  out(7, minus(even[7], cosine, seven));
  out(15, plus(even[7], cosine, seven));
}

/// DFTs of 2, 4, 8 or 16 points, as dft16.
template <std::size_t points, class In, class Out>
HWY_INLINE void dft(In in, Out out) {
  if constexpr (points == 16) {
    dft16(in, out);
  } else if constexpr (points == 2) {
    const Complex a = in(0);
    const Complex b = in(1);
    out(0, a + b);
    out(1, a - b);
  } else {
    static_assert(points == 4 || points == 8);
    Complex x[points];
    if constexpr (points == 4) {
      dft4(x, in, 0, 1);
    } else {
      dft8(x, in, 0, 1);
    }
    for (std::size_t k = 0; k < points; ++k) out(static_cast<int>(k), x[k]);
  }
}

}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
