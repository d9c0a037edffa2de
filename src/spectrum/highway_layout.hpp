#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "spectrum/aligned_buffer.hpp"
#include "spectrum/engine.hpp"

/// \file
/// What the vectorised engine's parts share whatever the vector unit: sizes, constants, one thread's buffers.

namespace slidestream {

constexpr std::int64_t fast_window = 256;
constexpr std::int64_t fast_stride = 128;  ///< rows of a block row, and columns that neighbouring windows share
constexpr int fast_radius = 3;             ///< smaller radii have zero taps beyond
constexpr std::int64_t fast_columns = 2;  ///< window columns walked down together: their row spectra fill half of an L2
constexpr std::size_t max_lanes = 16;     ///< floats of the widest vector

// Distances between rows and the like, in floats. None is a multiple of 4 KiB, where all would share a cache set.
constexpr std::size_t smoothed_pitch = 1024 + 256;
constexpr std::size_t ring_pitch = 1024 + 48;
constexpr std::size_t pair_part = 272;  ///< the transform of a row pair: real parts, then imaginary parts
constexpr std::size_t pair_pitch = 1024 + 128;
constexpr std::size_t max_window_spectra = 70656;  ///< of a window column's two block rows, paddings included

/// Counters of a bin, side by side: lanes take turns, so that equal bins of neighbours (always, on white glass) don't
/// wait for each other. They have 16 bits, and are emptied every `windows_per_flush` windows.
constexpr std::size_t counter_copies = 8;
constexpr std::size_t counter_bytes = counter_copies * sizeof(std::uint16_t);
constexpr std::uint64_t half_spectrum_values = 128 * 256;  ///< of columns 0 to 127
constexpr std::uint64_t windows_per_flush = 65535 / (half_spectrum_values / counter_copies);

/// Counters stand for: 0 below the range, 1 to bins, bins + 1 above the range, bins + 2 nothing at all.
constexpr std::size_t counters_beyond_bins = 3;
constexpr int max_fast_bins = 4093;

/// A coefficient F becomes a position in bins above 0 dB, K log2(1 + |F|), less half a bin so that rounding to the
/// nearest whole number gives the bin. With y = 1 + |F| = 2^e x, log2(y) = e + (x - 1) + q(x): the bits of y read as an
/// integer are e + (x - 1) in fixed point, and q is a polynomial.
struct PositionConstants {
  float per_bit = 0.0F;             ///< K / 2^23
  float constant = 0.0F;            ///< less half a bin, and the polynomial's constant term
  std::array<float, 5> polynomial;  ///< K times the coefficients of x to x^5
  bool any_range = false;           ///< the range doesn't begin at 0 dB, or values may lie outside: use what follows
  float low = 0.0F;                 ///< position of the range's low end
  float end = 0.0F;                 ///< bins, as a position
  std::int32_t nothing = 0;         ///< the counter that stands for nothing
};

struct FastParameters {
  std::array<float, fast_radius + 1> taps;
  PositionConstants position;
  std::size_t bins = 0;
  double value_per_position = 0.0;  ///< value = (position + half_bin) * value_per_position
  double half_bin = 0.0;
};

/// Twiddle factors e^(-2 pi i a b / 256).
struct Twiddles {
  alignas(64) std::array<std::array<float, 16>, 16> re;
  alignas(64) std::array<std::array<float, 16>, 16> im;
};
const Twiddles& twiddles();

/// One thread's buffers. Sizes are those of the widest vectors.
struct FastWorkspace final : SpectrumEngine::Workspace {
  explicit FastWorkspace(std::size_t bins);

  AlignedBuffer<float> row_spectra;     ///< of the two newest block rows of each window column
  AlignedBuffer<float> column_half;     ///< a group of columns between the two halves of its transform
  AlignedBuffer<float> row_pairs;       ///< transforms of two rows as one, a window column each
  AlignedBuffer<float> edge_columns;    ///< transform of columns 0 and N/2 as one
  AlignedBuffer<float> smoothed;        ///< the newest two rows, smoothed both ways
  AlignedBuffer<float> ring;            ///< eight rows smoothed along x
  AlignedBuffer<float> converted;       ///< a row as floats
  AlignedBuffer<std::uint8_t> edge;     ///< a row with its mirrored ends
  AlignedBuffer<std::int32_t> offsets;  ///< of counters, of two butterflies: one is being computed, one counted
  AlignedBuffer<std::uint16_t> counters;
  AlignedBuffer<std::uint32_t> edge_counters;  ///< for columns 0 and N/2, which weigh half
  std::uint64_t pending_windows = 0;           ///< in `counters`
};

}  // namespace slidestream
