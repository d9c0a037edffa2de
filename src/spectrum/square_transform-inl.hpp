// Transforms of windows whose side is a power of two: columns, then rows. Included once per vector unit.
#if defined(SLIDESTREAM_SPECTRUM_SQUARE_TRANSFORM_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIDESTREAM_SPECTRUM_SQUARE_TRANSFORM_INL_HPP
#undef SLIDESTREAM_SPECTRUM_SQUARE_TRANSFORM_INL_HPP
#else
#define SLIDESTREAM_SPECTRUM_SQUARE_TRANSFORM_INL_HPP
#endif

#include "spectrum/fft16-inl.hpp"
#include "spectrum/row_transform-inl.hpp"
#include "spectrum/square_plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {

/// Where element n of a line lies, in floats: [re | im] of a vector each, and a pad after every 16th element, so that
/// those that are transformed together don't meet in a few cache sets.
HWY_INLINE std::size_t padded(std::size_t n) { return (n + n / 16) * row_pitch; }

/// Floats from a group of ky to the next in the spectra of so many columns.
HWY_INLINE std::size_t spectra_pitch(std::size_t columns) { return padded(columns + 15) + row_pitch; }

/// One step over a block, whose element j + m apart `in(j, m)` gives. The block itself may be what is read.
template <std::size_t radix, class In>
HWY_INLINE void take_step(float* out, const TransformStep& step, In in) {
  const std::size_t apart = padded(step.apart);
  for (std::size_t j = 0; j < step.apart; ++j) {
    float* to = out + padded(j);
    const float* turn = step.turns.data() + j * 2 * radix;
    dft<radix>([&](int m) SLIDESTREAM_INLINE_LAMBDA { return in(j, static_cast<std::size_t>(m)); },
               [&](int k, Complex x) SLIDESTREAM_INLINE_LAMBDA {
                 if (k > 0) x = times(x, all(turn[2 * k]), all(turn[2 * k + 1]));
                 store(x.re, to + static_cast<std::size_t>(k) * apart);
                 store(x.im, to + static_cast<std::size_t>(k) * apart + lanes);
               });
  }
}

/// The first step of columns: element n is rows 2 n and 2 n + 1, from column x on.
template <std::size_t radix>
HWY_NOINLINE void step_from_pixels(float* HWY_RESTRICT out, const TransformStep& step, const float* const* rows,
                                   std::size_t x) {
  take_step<radix>(out, step, [&](std::size_t j, std::size_t m) SLIDESTREAM_INLINE_LAMBDA {
    const float* const* pair = rows + 2 * (j + m * step.apart);
    return Complex{load_unaligned(pair[0] + x), load_unaligned(pair[1] + x)};
  });
}

/// The first step of rows: element n stands in column x + n of a group's spectra.
template <std::size_t radix>
HWY_NOINLINE void step_from_spectra(float* HWY_RESTRICT out, const TransformStep& step,
                                    const float* HWY_RESTRICT spectra, std::size_t x) {
  const std::size_t apart = padded(step.apart);
  take_step<radix>(out, step, [&](std::size_t j, std::size_t m) SLIDESTREAM_INLINE_LAMBDA {
    const float* from = spectra + padded(x + j) + m * apart;
    return Complex{load(from), load(from + lanes)};
  });
}

/// A later step, block by block in place.
template <std::size_t radix>
HWY_NOINLINE void step_in_place(float* line, const TransformStep& step, std::size_t points) {
  const std::size_t apart = padded(step.apart);
  for (std::size_t begin = 0; begin < points; begin += radix * step.apart) {
    float* block = line + padded(begin);
    take_step<radix>(block, step, [&](std::size_t j, std::size_t m) SLIDESTREAM_INLINE_LAMBDA {
      const float* from = block + padded(j) + m * apart;
      return Complex{load(from), load(from + lanes)};
    });
  }
}

HWY_INLINE void later_steps(float* line, const TransformPlan& plan) {
  for (std::size_t i = 1; i < plan.steps.size(); ++i) {
    const TransformStep& step = plan.steps[i];
    if (step.radix == 8) {
      step_in_place<8>(line, step, plan.points);
    } else {
      step_in_place<4>(line, step, plan.points);
    }
  }
}

/// Calls `step(std::integral_constant<std::size_t, radix>())`.
template <class Step>
HWY_INLINE void with_radix(std::size_t radix, Step step) {
  if (radix == 16) {
    step(std::integral_constant<std::size_t, 16>());
  } else if (radix == 8) {
    step(std::integral_constant<std::size_t, 8>());
  } else if (radix == 4) {
    step(std::integral_constant<std::size_t, 4>());
  } else {
    step(std::integral_constant<std::size_t, 2>());
  }
}

/// The last DFTs of columns, of neighbours `in(n)`; coefficients go to their places.
template <std::size_t points, class In>
HWY_INLINE void last_of_column(float* HWY_RESTRICT out, std::size_t first, std::size_t between, In in) {
  dft<points>(in, [&](int k, Complex x) SLIDESTREAM_INLINE_LAMBDA {
    float* to = out + padded(first + static_cast<std::size_t>(k) * between);
    store(x.re, to);
    store(x.im, to + lanes);
  });
}

/// Z(k) of L columns in natural order, of row pairs as complex numbers.
inline HWY_NOINLINE void transform_pairs(float* HWY_RESTRICT natural, float* HWY_RESTRICT line,
                                         const TransformPlan& plan, const float* const* rows, std::size_t x) {
  if (plan.steps.empty()) {
    const auto pixels = [&](int n) SLIDESTREAM_INLINE_LAMBDA {
      return Complex{load_unaligned(rows[2 * n] + x), load_unaligned(rows[2 * n + 1] + x)};
    };
    if (plan.last == 8) {
      last_of_column<8>(natural, 0, 1, pixels);
    } else {
      last_of_column<16>(natural, 0, 1, pixels);
    }
    return;
  }
  with_radix(plan.steps[0].radix, [&](auto radix) SLIDESTREAM_INLINE_LAMBDA {
    step_from_pixels<decltype(radix)::value>(line, plan.steps[0], rows, x);
  });
  later_steps(line, plan);
  for (std::size_t block = 0; block < plan.first.size(); ++block) {
    const float* from = line + padded(16 * block);
    last_of_column<16>(natural, plan.first[block], plan.first.size(), [&](int n) SLIDESTREAM_INLINE_LAMBDA {
      return Complex{load(from + n * row_pitch), load(from + n * row_pitch + lanes)};
    });
  }
}

/// From Z, the transform of even and odd rows as one, to the columns' own, F(k) = E(k) + e^(-2 pi i k / N) O(k), twice
/// as large: 2 E(k) = Z(k) + conj Z(-k), 2 i O(k) = Z(k) - conj Z(-k). F(0) and F(N / 2) are real, and share element 0.
inline HWY_NOINLINE void separate_columns(float* natural, const SquarePlan& plan) {
  const std::size_t half = plan.side / 2;
  const Floats sum = hn::Add(load(natural), load(natural + lanes));
  const Floats difference = hn::Sub(load(natural), load(natural + lanes));
  store(hn::Add(sum, sum), natural);
  store(hn::Add(difference, difference), natural + lanes);
  for (std::size_t k = 1; k <= half / 2; ++k) {
    float* low = natural + padded(k);
    float* high = natural + padded(half - k);
    const Complex z{load(low), load(low + lanes)};
    const Complex mirrored{load(high), load(high + lanes)};
    const Complex even{hn::Add(z.re, mirrored.re), hn::Sub(z.im, mirrored.im)};
    const Complex odd = times({hn::Add(z.im, mirrored.im), hn::Sub(mirrored.re, z.re)}, all(plan.roots[2 * k]),
                              all(plan.roots[2 * k + 1]));
    store(hn::Sub(even.re, odd.re), high);
    store(hn::Sub(odd.im, even.im), high + lanes);
    store(hn::Add(even.re, odd.re), low);
    store(hn::Add(even.im, odd.im), low + lanes);
  }
}

/// L columns' coefficients, from lanes being columns to lanes being ky, group by group.
inline HWY_NOINLINE void turn_columns(float* HWY_RESTRICT spectra, std::size_t pitch, const float* HWY_RESTRICT natural,
                                      std::size_t x, std::size_t half) {
  for (std::size_t ky = 0; ky < half; ky += lanes) {
    float* to = spectra + ky / lanes * pitch + padded(x);
    for (const std::size_t part : {std::size_t{0}, lanes}) {
      Floats v[lanes];
      for (std::size_t i = 0; i < lanes; ++i) v[i] = load(natural + padded(ky + i) + part);
      transpose(v);
      for (std::size_t i = 0; i < lanes; ++i) store(v[i], to + i * row_pitch + part);
    }
  }
}

/// The spectra of columns 0 to `width` of a window's rows, twice as large as the pixels'. Columns up to the next
/// multiple of L are transformed, too: rows must be as long.
HWY_INLINE void transform_columns(float* spectra, float* natural, float* line, const SquarePlan& plan,
                                  const float* const* rows, std::size_t width) {
  for (std::size_t x = 0; x < width; x += lanes) {
    transform_pairs(natural, line, plan.down, rows, x);
    separate_columns(natural, plan);
    turn_columns(spectra, spectra_pitch(width), natural, x, plan.side / 2);
  }
}

/// All but the last DFTs of a group's rows, whose first column is x.
HWY_INLINE void begin_rows(float* HWY_RESTRICT line, const TransformPlan& plan, const float* HWY_RESTRICT of_group,
                           std::size_t x) {
  if (plan.steps.empty()) {
    for (std::size_t n = 0; n < plan.points; ++n) {
      const float* from = of_group + padded(x + n);
      store(load(from), line + padded(n));
      store(load(from + lanes), line + padded(n) + lanes);
    }
    return;
  }
  with_radix(plan.steps[0].radix, [&](auto radix) SLIDESTREAM_INLINE_LAMBDA {
    step_from_spectra<decltype(radix)::value>(line, plan.steps[0], of_group, x);
  });
  later_steps(line, plan);
}

}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
