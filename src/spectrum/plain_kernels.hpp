#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>

#include <slidestream/config.hpp>

/// \file
/// The vectorised inner loops of the plain engine, and the smoothing of others, dispatched to the machine's vector unit
/// at run time. What they give for a pixel or a coefficient doesn't depend on where it stands in a row.

namespace slidestream {

/// Floats that rows must have beyond their end, since loops run in whole vectors.
constexpr std::size_t row_slack = 32;

/// How coefficients become values, and values bins.
struct Binning {
  ValueKind value = ValueKind::log1p_db;
  float low = 0.0F;
  float scale = 0.0F;  ///< bins per unit
  int bins = 0;
};

/// What a row of coefficients adds up to.
struct RowSums {
  float values = 0.0F;
  float squares = 0.0F;
  std::uint32_t clipped = 0;  ///< values outside the range
};

/// The loops of one vector unit: who keeps them gives the same bits ever after.
struct PlainKernels {
  /// Smooths one row vertically: `out[x]` for x < width from the `2 * radius + 1` rows around it, of which `rows[i]`
  /// points at column 0, less `luminance_offset`. Reads nothing beyond `width`, which is at least 8.
  void (*smooth_vertically)(float* out, const std::uint8_t* const* rows, const float* taps, int radius,
                            std::size_t width);
  /// Smooths along a row: `out[x]` for x < width from `in[x - radius]` to `in[x + radius]`. Reads and writes up to
  /// `row_slack` floats beyond.
  void (*smooth_horizontally)(float* out, const float* in, const float* taps, int radius, std::size_t width);
  /// Values and bins of `count` coefficients, and the sums of all of them. Reads and writes up to `row_slack` elements
  /// beyond.
  RowSums (*bin_row)(float* values, std::int32_t* bins, const std::complex<float>* row, std::size_t count,
                     const Binning& binning);
  const char* unit;  ///< "AVX3", "AVX2", ...
};

/// Those of the machine's best vector unit.
PlainKernels plain_kernels();

}  // namespace slidestream
