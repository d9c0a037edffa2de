// Row transforms: two real rows of 256 pixels as one complex sequence. Included once per vector unit.
#if defined(SLIDESTREAM_SPECTRUM_ROW_TRANSFORM_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIDESTREAM_SPECTRUM_ROW_TRANSFORM_INL_HPP
#undef SLIDESTREAM_SPECTRUM_ROW_TRANSFORM_INL_HPP
#else
#define SLIDESTREAM_SPECTRUM_ROW_TRANSFORM_INL_HPP
#endif

#include "spectrum/fft16-inl.hpp"
#include "spectrum/highway_layout.hpp"

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {

constexpr std::size_t groups = 128 / lanes;  ///< of columns that are transformed together

// Row spectra lie as [window column][group][block row's parity][row / 16][row % 16][re | im of a group's columns]. The
// column transform reads rows 16 apart, the row transform writes all groups of a row: paddings keep both from meeting
// the same few cache sets over and over.
constexpr std::size_t row_pitch = 2 * lanes;
constexpr std::size_t sixteen_rows = 17 * row_pitch;
constexpr std::size_t block_pitch = 8 * sixteen_rows;
constexpr std::size_t group_pitch = 2 * block_pitch + 32;
constexpr std::size_t window_pitch = groups * group_pitch;
static_assert(window_pitch <= max_window_spectra);

/// Transposes `lanes` vectors.
HWY_INLINE void transpose(Floats* v) {
  const hn::RepartitionToWide<FloatTag> wide;
  for (std::size_t i = 0; i < lanes; i += 4) {  // 4 x 4 within each 128-bit block
    const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(float_tag, v[i], v[i + 1]));
    const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(float_tag, v[i], v[i + 1]));
    const auto cd_low = hn::BitCast(wide, hn::InterleaveLower(float_tag, v[i + 2], v[i + 3]));
    const auto cd_high = hn::BitCast(wide, hn::InterleaveUpper(float_tag, v[i + 2], v[i + 3]));
    v[i] = hn::BitCast(float_tag, hn::InterleaveLower(wide, ab_low, cd_low));
    v[i + 1] = hn::BitCast(float_tag, hn::InterleaveUpper(wide, ab_low, cd_low));
    v[i + 2] = hn::BitCast(float_tag, hn::InterleaveLower(wide, ab_high, cd_high));
    v[i + 3] = hn::BitCast(float_tag, hn::InterleaveUpper(wide, ab_high, cd_high));
  }
  for (std::size_t i = 0; i < 4; ++i) {  // then the blocks
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    // Highway has no name for these: blocks 0 and 2, or 1 and 3, of both arguments.
    const auto even = [](Floats a, Floats b)
                          SLIDESTREAM_INLINE_LAMBDA { return Floats{_mm512_shuffle_f32x4(a.raw, b.raw, 0x88)}; };
    const auto odd = [](Floats a, Floats b)
                         SLIDESTREAM_INLINE_LAMBDA { return Floats{_mm512_shuffle_f32x4(a.raw, b.raw, 0xdd)}; };
    const Floats x0 = even(v[i], v[i + 4]);
    const Floats x1 = odd(v[i], v[i + 4]);
    const Floats y0 = even(v[i + 8], v[i + 12]);
    const Floats y1 = odd(v[i + 8], v[i + 12]);
    v[i] = even(x0, y0);
    v[i + 4] = even(x1, y1);
    v[i + 8] = odd(x0, y0);
    v[i + 12] = odd(x1, y1);
#elif HWY_MAX_BYTES == 32
    const Floats a = v[i];
    const Floats b = v[i + 4];
    v[i] = hn::ConcatLowerLower(float_tag, b, a);
    v[i + 4] = hn::ConcatUpperUpper(float_tag, b, a);
#endif
  }
}

/// 256-point DFT of a + i b, in natural order; element 256 repeats element 0.
inline HWY_NOINLINE void transform_row_pair(float* HWY_RESTRICT out, const float* HWY_RESTRICT a,
                                            const float* HWY_RESTRICT b, const Twiddles& twiddle) {
  constexpr std::size_t vectors = 16 / lanes;  // of 16 numbers
  alignas(64) float re[16 * 16];
  alignas(64) float im[16 * 16];
  // x = 16 n + lane: over n first, lanes being what is left of x.
  for (std::size_t part = 0; part < vectors; ++part) {
    const std::size_t lane = part * lanes;
    dft16(
        [&](int n) SLIDESTREAM_INLINE_LAMBDA {
          return Complex{load(a + 16 * n + lane), load(b + 16 * n + lane)};
        },
        [&](int k, Complex x) SLIDESTREAM_INLINE_LAMBDA {
          if (k > 0) x = times(x, load(&twiddle.re[k][lane]), load(&twiddle.im[k][lane]));
          store(x.re, re + 16 * k + lane);
          store(x.im, im + 16 * k + lane);
        });
  }
  // Then over what is left of x, lanes being k of the first: kx = k + 16 k'.
  for (std::size_t part = 0; part < vectors; ++part) {
    const std::size_t lane = part * lanes;
    Floats x_re[16];
    Floats x_im[16];
    const auto turned = [&](Floats* to, const float* from) SLIDESTREAM_INLINE_LAMBDA {
      for (std::size_t square = 0; square < vectors; ++square) {
        for (std::size_t i = 0; i < lanes; ++i) to[square * lanes + i] = load(from + 16 * (lane + i) + square * lanes);
        transpose(to + square * lanes);
      }
    };
    turned(x_re, re);
    turned(x_im, im);
    dft16(
        [&](int n) SLIDESTREAM_INLINE_LAMBDA {
          return Complex{x_re[n], x_im[n]};
        },
        [&](int k, Complex x) SLIDESTREAM_INLINE_LAMBDA {
          store(x.re, out + 16 * k + lane);
          store(x.im, out + pair_part + 16 * k + lane);
        });
  }
  out[256] = out[0];
  out[pair_part + 256] = out[pair_part];
}

/// Elements k to k + lanes - 1 of a pair's transform Z, and those at side - k, side - k - 1, ... Imaginary parts lie
/// `part` floats behind the real ones.
struct MirroredPair {
  Complex z, mirrored;
};
HWY_INLINE MirroredPair load_mirrored(const float* pair, std::size_t k, std::size_t side, std::size_t part) {
  const float* back = pair + side + 1 - lanes - k;
  return {{load(pair + k), load(pair + part + k)},
          {hn::Reverse(float_tag, load_unaligned(back)), hn::Reverse(float_tag, load_unaligned(back + part))}};
}

/// Takes a pair's transform Z apart into the spectra A and B of its two rows, twice as large: 2 A(k) = Z(k) + conj
/// Z(-k), 2 i B(k) = Z(k) - conj Z(-k). Columns 0 and 128 are both real, and share lane 0 of the first group.
inline HWY_NOINLINE void separate_rows(float* HWY_RESTRICT rows, const float* HWY_RESTRICT pair) {
  for (std::size_t group = 0; group < groups; ++group) {
    float* to = rows + group * group_pitch;
    const auto [z, mirrored] = load_mirrored(pair, group * lanes, 256, pair_part);
    store(hn::Add(z.re, mirrored.re), to);
    store(hn::Sub(z.im, mirrored.im), to + lanes);
    store(hn::Add(z.im, mirrored.im), to + row_pitch);
    store(hn::Sub(mirrored.re, z.re), to + row_pitch + lanes);
  }
  rows[lanes] = 2.0F * pair[128];
  rows[row_pitch + lanes] = 2.0F * pair[pair_part + 128];
}

}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
