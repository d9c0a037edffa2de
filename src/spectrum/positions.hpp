#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "spectrum/aligned_buffer.hpp"
#include "statistics/collector.hpp"

/// \file
/// How the vectorised engines turn coefficients into positions on the axis of bins, count them and sum them up, when
/// values are log1p_db: constants and counters, the same for every vector unit.

namespace slidestream {

constexpr std::size_t max_lanes = 16;  ///< floats of the widest vector

/// Counters of a bin, side by side: lanes take turns, so that equal bins of neighbours (always, on white glass) don't
/// wait for each other. They have 16 bits, and are emptied before they could overflow.
constexpr std::size_t counter_copies = 8;
constexpr std::size_t counter_bytes = counter_copies * sizeof(std::uint16_t);

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

/// Positions of a configuration, and the way back to values.
struct Positions {
  explicit Positions(const AnalysisConfig& config);

  PositionConstants constants;
  std::size_t bins = 0;
  double value_per_position = 0.0;  ///< value = (position + half_bin) * value_per_position
  double half_bin = 0.0;
};

/// Whether a configuration's values are log1p_db, and its bins neither too many nor too narrow for Positions.
bool positions_take(const AnalysisConfig& config);

/// What the positions of a window add up to.
struct PositionSums {
  double sum = 0.0;
  double squares = 0.0;
};

/// Adds a window's moments, given those of its `count` positions, and writes its cell of the map if there is one.
void add_window(SpectrumSums& sums, float* cell, const PositionSums& of_positions, std::uint64_t count,
                const Positions& positions);

/// One thread's counters.
struct Counters {
  explicit Counters(std::size_t bins)
      : halved(counter_copies * (bins + counters_beyond_bins)), whole(bins + counters_beyond_bins) {}

  AlignedBuffer<std::uint16_t> halved;  ///< of coefficients that stand for their mirror image, too
  AlignedBuffer<std::uint32_t> whole;   ///< of the two columns that are their own mirror images
};

/// Adds what the counters hold to the histogram, and empties them.
void flush_counters(SpectrumSums& sums, Counters& counters, std::size_t bins);

/// Positions as an engine keeps them for collectors: groups of `lanes` columns of `side` coefficients, coefficient by
/// coefficient; behind them columns 0 and N/2, which have no place in the groups. Columns may stand for kx or for ky.
ValueLayout kept_layout(std::size_t side, std::size_t lanes, const Positions& positions);
/// Floats of what is kept at a time: a group, or the two columns.
constexpr std::size_t kept_floats(std::size_t side) { return side * max_lanes; }

/// How the last step of a group's transform goes: 16-point DFTs, the coefficients of which are `blocks` apart.
struct LastStep {
  const std::uint16_t* first = nullptr;  ///< of each DFT the first coefficient
  std::size_t blocks = 0;
  std::size_t edge_part = 0;  ///< floats from the real parts of the edge columns to the imaginary parts
  std::size_t lanes = 0;      ///< lanes that stand for something
  std::size_t turn = 0;       ///< DFTs counted so far, odd or even: buffers of offsets take turns
};

}  // namespace slidestream
