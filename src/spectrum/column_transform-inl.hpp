// Column transforms, and what becomes of their coefficients: values, moments, counted bins. Included once per vector
// unit.
#if defined(SLIDESTREAM_SPECTRUM_COLUMN_TRANSFORM_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIDESTREAM_SPECTRUM_COLUMN_TRANSFORM_INL_HPP
#undef SLIDESTREAM_SPECTRUM_COLUMN_TRANSFORM_INL_HPP
#else
#define SLIDESTREAM_SPECTRUM_COLUMN_TRANSFORM_INL_HPP
#endif

#include "spectrum/fft16-inl.hpp"
#include "spectrum/highway_layout.hpp"
#include "spectrum/row_transform-inl.hpp"
#include "spectrum/smoothing.hpp"

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {

/// Between the two halves a group lies as [ky % 16][row % 16][re | im].
constexpr std::size_t half_pitch = 17 * row_pitch;

/// First half of the columns' transform: 16-point DFTs over rows 16 apart, eight from each of the window's block rows.
inline HWY_NOINLINE void transform_columns_first(float* HWY_RESTRICT out, const float* HWY_RESTRICT top,
                                                 const float* HWY_RESTRICT bottom, const Twiddles& twiddle) {
  for (std::size_t row = 0; row < 16; ++row) {
    const float* upper = top + row * row_pitch;
    const float* lower = bottom + row * row_pitch;
    float* to = out + row * row_pitch;
    dft16(
        [&](int n) SLIDESTREAM_INLINE_LAMBDA {
          const float* from = n < 8 ? upper + n * sixteen_rows : lower + (n - 8) * sixteen_rows;
          return Complex{load(from), load(from + lanes)};
        },
        [&](int k, Complex x) SLIDESTREAM_INLINE_LAMBDA {
          if (k > 0) x = times(x, all(twiddle.re[row][k]), all(twiddle.im[row][k]));
          store(x.re, to + k * half_pitch);
          store(x.im, to + k * half_pitch + lanes);
        });
  }
}

/// PositionConstants: the position of |F| in bins above 0 dB, less half a bin.
HWY_INLINE Floats position_of(Complex f, const PositionConstants& constants) {
  const Floats y = hn::Add(hn::Sqrt(hn::MulAdd(f.re, f.re, hn::Mul(f.im, f.im))), all(1.0F));
  const hn::Vec<IntTag> one_bits = hn::Set(int_tag, 0x3F800000);
  const hn::Vec<IntTag> bits = hn::BitCast(int_tag, y);
  const Floats x = hn::BitCast(float_tag, hn::OrAnd(one_bits, bits, hn::Set(int_tag, 0x007FFFFF)));
  const Floats linear =
      hn::MulAdd(hn::ConvertTo(float_tag, hn::Sub(bits, one_bits)), all(constants.per_bit), all(constants.constant));
  const std::array<float, 5>& q = constants.polynomial;
  Floats p = hn::MulAdd(x, all(q[4]), all(q[3]));
  p = hn::MulAdd(p, x, all(q[2]));
  p = hn::MulAdd(p, x, all(q[1]));
  p = hn::MulAdd(p, x, all(q[0]));
  return hn::MulAdd(p, x, linear);
}

/// The counter of a position, in the low 16 bits of each lane: adding 1.5 x 2^23 to a float leaves its nearest whole
/// number there, and one more makes room for the counter of what lies below.
template <bool any_range>
HWY_INLINE hn::Vec<IntTag> counter_of(Floats position, const PositionConstants& constants) {
  if constexpr (any_range) {
    position = hn::Sub(position, all(constants.low));
    position = hn::Min(hn::Max(position, all(-1.0F)), all(constants.end));
  }
  return hn::BitCast(int_tag, hn::Add(position, all(12582913.0F)));
}

/// Counts `lanes` values, whose counters are given as offsets in bytes. Lanes take turns with a counter's copies.
HWY_INLINE void count(std::uint16_t* HWY_RESTRICT counters, const std::int32_t* HWY_RESTRICT offsets,
                      std::size_t first) {
  for (std::size_t i = first; i < first + lanes; ++i) {
    char* copies = reinterpret_cast<char*>(counters) + static_cast<std::uint16_t>(offsets[i]);
    ++reinterpret_cast<std::uint16_t*>(copies)[i % counter_copies];
  }
}

/// Sums of lanes in double precision: long sums of equal numbers would drift in float32.
using HalfTag = hn::Half<FloatTag>;
using WideTag = hn::Rebind<double, HalfTag>;
struct CarefulSum {
  hn::Vec<WideTag> low, high;
};
HWY_INLINE CarefulSum nothing_yet() { return {hn::Zero(WideTag()), hn::Zero(WideTag())}; }
HWY_INLINE void add(CarefulSum& sum, Floats lane_sums) {
  sum.low = hn::Add(sum.low, hn::PromoteTo(WideTag(), hn::LowerHalf(HalfTag(), lane_sums)));
  sum.high = hn::Add(sum.high, hn::PromoteTo(WideTag(), hn::UpperHalf(HalfTag(), lane_sums)));
}
HWY_INLINE double total(const CarefulSum& sum) {
  return hn::GetLane(hn::SumOfLanes(WideTag(), hn::Add(sum.low, sum.high)));
}

/// Last step of a group's transform: 16-point DFTs over neighbouring rows; positions are summed and counted in the
/// butterfly's registers. The counters of one butterfly are found in memory while the next is computed: counting is
/// loads and stores, the butterfly is arithmetic, and together they fill the core. With `edge`, lane 0 (the two columns
/// that are their own mirror images) is set aside in `edge_columns`, and lanes that stand for nothing are left out.
/// With `careful`, each butterfly's sums are added in double precision. With `keep`, coefficient k's positions are left
/// at `kept[k * lanes]`.
template <bool edge, bool any_range, bool careful, bool keep>
inline HWY_NOINLINE void transform_and_count(PositionSums& sums, float* HWY_RESTRICT edge_columns,
                                             std::int32_t* HWY_RESTRICT offsets, std::uint16_t* HWY_RESTRICT counters,
                                             const float* HWY_RESTRICT half, float* HWY_RESTRICT kept,
                                             const PositionConstants& constants, const LastStep& last) {
  Floats sum = hn::Zero(float_tag);
  Floats squares = hn::Zero(float_tag);
  CarefulSum careful_sum = nothing_yet();
  CarefulSum careful_squares = nothing_yet();
  const auto aside = hn::Or(hn::FirstN(float_tag, 1), hn::Not(hn::FirstN(float_tag, last.lanes)));
  for (std::size_t block = 0; block < last.blocks; ++block) {
    const float* from = half + block * half_pitch;
    float* edge_to = edge_columns + last.first[block];
    std::int32_t* now = offsets + (last.turn + block) % 2 * 16 * lanes;
    const std::int32_t* before = offsets + (last.turn + block + 1) % 2 * 16 * lanes;
    dft16(
        [&](int n) SLIDESTREAM_INLINE_LAMBDA {
          return Complex{load(from + n * row_pitch), load(from + n * row_pitch + lanes)};
        },
        [&](int k, Complex f) SLIDESTREAM_INLINE_LAMBDA {
          Floats position = position_of(f, constants);
          hn::Vec<IntTag> counter = counter_of<any_range>(position, constants);
          if constexpr (edge) {
            edge_to[static_cast<std::size_t>(k) * last.blocks] = hn::GetLane(f.re);
            edge_to[last.edge_part + static_cast<std::size_t>(k) * last.blocks] = hn::GetLane(f.im);
            position = hn::IfThenZeroElse(aside, position);
            counter = hn::IfThenElse(hn::RebindMask(int_tag, aside), hn::Set(int_tag, constants.nothing), counter);
          }
          if constexpr (keep) {
            store(position, kept + (last.first[block] + static_cast<std::size_t>(k) * last.blocks) * lanes);
          }
          static_assert(counter_bytes == 1 << 4);
          hn::Store(hn::ShiftLeft<4>(counter), int_tag, now + k * lanes);
          sum = hn::Add(sum, position);
          squares = hn::MulAdd(position, position, squares);
          count(counters, before, k * lanes);
        });
    if constexpr (careful) {
      add(careful_sum, sum);
      add(careful_squares, squares);
      sum = squares = hn::Zero(float_tag);
    }
  }
  if constexpr (careful) {
    sums.sum += total(careful_sum);
    sums.squares += total(careful_squares);
  } else {
    sums.sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(float_tag, sum)));
    sums.squares += static_cast<double>(hn::GetLane(hn::SumOfLanes(float_tag, squares)));
  }
}

/// Columns 0 and `side` / 2 come as the transform Z of one complex column, imaginary parts `part` floats behind the
/// real ones: F0(k) = (Z(k) + conj Z(-k)) / 2 and Fside/2(k) = (Z(k) - conj Z(-k)) / 2i. They are their own mirror
/// images, and weigh half of what others do. With `keep` their positions are left in `kept`, one column behind the
/// other.
template <bool any_range, bool keep>
inline HWY_NOINLINE void finish_edge_columns(PositionSums& sums, std::uint32_t* HWY_RESTRICT counters,
                                             float* HWY_RESTRICT edge_columns, float* HWY_RESTRICT kept,
                                             const PositionConstants& constants, std::size_t side, std::size_t part) {
  edge_columns[side] = edge_columns[0];
  edge_columns[part + side] = edge_columns[part];
  Floats sum = hn::Zero(float_tag);
  Floats squares = hn::Zero(float_tag);
  alignas(64) std::int32_t indices[lanes];
  const auto add = [&](Complex f, std::size_t place) SLIDESTREAM_INLINE_LAMBDA {
    const Floats position = position_of(f, constants);
    if constexpr (keep) store(position, kept + place);
    hn::Store(counter_of<any_range>(position, constants), int_tag, indices);
    for (const std::int32_t index : indices) ++counters[static_cast<std::uint16_t>(index)];
    sum = hn::Add(sum, position);
    squares = hn::MulAdd(position, position, squares);
  };
  const Floats one_half = all(0.5F);
  for (std::size_t k = 0; k < side; k += lanes) {
    const auto [z, mirrored] = load_mirrored(edge_columns, k, side, part);
    Complex first{hn::Mul(one_half, hn::Add(z.re, mirrored.re)), hn::Mul(one_half, hn::Sub(z.im, mirrored.im))};
    if (k == 0) {  // back to F(0,0) what was taken off the pixels
      const Floats taken = all(static_cast<float>(luminance_offset) * static_cast<float>(side * side));
      first.re = hn::Add(first.re, hn::IfThenElseZero(hn::FirstN(float_tag, 1), taken));
    }
    add(first, k);
    add({hn::Mul(one_half, hn::Add(z.im, mirrored.im)), hn::Mul(one_half, hn::Sub(mirrored.re, z.re))}, side + k);
  }
  sums.sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(float_tag, sum)));
  sums.squares += static_cast<double>(hn::GetLane(hn::SumOfLanes(float_tag, squares)));
}

}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
