#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "spectrum/aligned_buffer.hpp"
#include "spectrum/engine.hpp"
#include "spectrum/positions.hpp"

/// \file
/// What the vectorised engine's parts share whatever the vector unit: sizes, constants, one thread's buffers.

namespace slidestream {

constexpr std::int64_t fast_window = 256;
constexpr std::int64_t fast_stride = 128;  ///< rows of a block row, and columns that neighbouring windows share
constexpr int fast_radius = 3;             ///< smaller radii have zero taps beyond
constexpr std::int64_t fast_columns = 2;  ///< window columns walked down together: their row spectra fill half of an L2

// Distances between rows and the like, in floats. None is a multiple of 4 KiB, where all would share a cache set.
constexpr std::size_t smoothed_pitch = 1024 + 256;
constexpr std::size_t ring_pitch = 1024 + 48;
constexpr std::size_t pair_part = 272;  ///< the transform of a row pair: real parts, then imaginary parts
constexpr std::size_t pair_pitch = 1024 + 128;
constexpr std::size_t max_window_spectra = 70656;  ///< of a window column's two block rows, paddings included

/// Windows after which counters are emptied: those of columns 0 to 127 by then fill 16 bits.
constexpr std::uint64_t windows_per_flush = 65535 / (128 * 256 / counter_copies);

struct FastParameters {
  std::array<float, fast_radius + 1> taps;
  Positions positions;
};

/// Twiddle factors e^(-2 pi i a b / 256).
struct Twiddles {
  alignas(64) std::array<std::array<float, 16>, 16> re;
  alignas(64) std::array<std::array<float, 16>, 16> im;
};
const Twiddles& twiddles();

/// One thread's buffers. Sizes are those of the widest vectors.
struct FastWorkspace final : SpectrumEngine::Workspace {
  FastWorkspace(const AnalysisConfig& config, const ValueLayout& layout);

  AlignedBuffer<float> row_spectra;     ///< of the two newest block rows of each window column
  AlignedBuffer<float> column_half;     ///< a group of columns between the two halves of its transform
  AlignedBuffer<float> row_pairs;       ///< transforms of two rows as one, a window column each
  AlignedBuffer<float> edge_columns;    ///< transform of columns 0 and N/2 as one
  AlignedBuffer<float> smoothed;        ///< the newest two rows, smoothed both ways
  AlignedBuffer<float> ring;            ///< eight rows smoothed along x
  AlignedBuffer<float> converted;       ///< a row as floats
  AlignedBuffer<std::uint8_t> edge;     ///< a row with its mirrored ends
  AlignedBuffer<std::int32_t> offsets;  ///< of counters, of two butterflies: one is being computed, one counted
  Counters counters;
  Collectors collectors;
  AlignedBuffer<float> kept;          ///< positions for them, of one group
  std::uint64_t pending_windows = 0;  ///< in `counters`
};

}  // namespace slidestream
