#pragma once

#include <cstddef>
#include <cstdint>

#include "spectrum/band.hpp"
#include "spectrum/engine.hpp"
#include "spectrum/positions.hpp"
#include "spectrum/square_plan.hpp"

/// \file
/// What the parts of the engine for windows whose side is a power of two share, whatever the vector unit.

namespace slidestream {

/// Columns of neighbouring windows that are transformed together: what they share, they share once.
constexpr std::int64_t widest_square_band = 512;

/// One thread's buffers of the engine.
struct SquareWorkspace final : SpectrumEngine::Workspace {
  SquareWorkspace(const WindowBand& shape, const SquareScratch& scratch, std::size_t edge_part,
                  const AnalysisConfig& config, const ValueLayout& layout)
      : band(shape.make_buffers()),
        spectra(scratch.spectra),
        line(scratch.line),
        natural(scratch.natural),
        edge_columns(2 * edge_part),
        offsets(2 * 16 * max_lanes),
        counters(static_cast<std::size_t>(config.bins)),
        collectors(config, layout),
        kept(collectors.empty() ? 0 : kept_floats(static_cast<std::size_t>(config.window))) {}

  BandBuffers band;
  AlignedBuffer<float> spectra;
  AlignedBuffer<float> line;
  AlignedBuffer<float> natural;
  AlignedBuffer<float> edge_columns;    ///< transform of the rows of ky 0 and N/2 as one
  AlignedBuffer<std::int32_t> offsets;  ///< of counters, of two butterflies: one is being computed, one counted
  Counters counters;
  Collectors collectors;
  AlignedBuffer<float> kept;  ///< positions for them, of one group
  std::uint64_t pending = 0;  ///< at most so much is in any one of the 16-bit counters
};

struct SquareParameters {
  SquarePlan plan;
  Positions positions;
  std::int64_t stride = 0;
  std::size_t edge_part = 0;  ///< floats of the real parts of edge columns, the first once more behind the last
};

}  // namespace slidestream
