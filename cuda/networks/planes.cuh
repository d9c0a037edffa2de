#pragma once

#include <cstdint>

/// \file
/// Tiles with red, green and blue side by side, as planes of numbers that a table has for each sample.

namespace slidestream::cuda {

namespace {

struct PlanesShape {
  static constexpr int threads = 256;
  static constexpr unsigned pixels = 4;  ///< that a thread makes
};

/// `Sample` is a number of a plane: float, or the bits of a half.
template <class Sample>
struct PlanesTask {
  const std::uint8_t* pixels;  ///< tiles x area x 3
  Sample* planes;              ///< tiles x 3 x area
  const Sample* table;         ///< 3 x 256
  std::uint32_t area;          ///< pixels of a tile
  std::uint32_t runs;          ///< of `PlanesShape::pixels` in a tile, the last perhaps not whole
  std::uint32_t tiles;
};

template <class Sample>
unsigned planes_blocks(const PlanesTask<Sample>& task) {
  const std::uint64_t runs = std::uint64_t{task.runs} * task.tiles;
  return static_cast<unsigned>((runs + PlanesShape::threads - 1) / PlanesShape::threads);
}

template <class Sample>
__global__ void __launch_bounds__(PlanesShape::threads) make_planes(const __grid_constant__ PlanesTask<Sample> task) {
  const std::uint64_t run = std::uint64_t{blockIdx.x} * PlanesShape::threads + threadIdx.x;
  const std::uint64_t tile = run / task.runs;
  if (tile >= task.tiles) return;
  const auto first = static_cast<std::uint32_t>(run - tile * task.runs) * PlanesShape::pixels;
  const std::uint8_t* const in = task.pixels + (tile * task.area + first) * 3;
  Sample* const out = task.planes + tile * task.area * 3 + first;
  const std::uint32_t left = task.area - first;
  const unsigned count = left < PlanesShape::pixels ? left : PlanesShape::pixels;
  // Neighbours' bytes share sectors, and the table stays in the cache.
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned channel = 0; channel < 3; ++channel) {
      out[std::uint64_t{channel} * task.area + i] = task.table[channel * 256 + in[3 * i + channel]];
    }
  }
}

}  // namespace

}  // namespace slidestream::cuda
