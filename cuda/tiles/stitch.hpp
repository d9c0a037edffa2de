#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <slidestream/stitch.hpp>

/// \file
/// Tiles that overlap, on a device: cut from an image, and what a network gives for them put together. All pointers are
/// device memory; nothing waits.

namespace slidestream::cuda {

/// Values of one tile that become samples.
struct TileValues {
  const float* values;  ///< channel after channel
  void* to;             ///< samples side by side, of `sample`
  std::uint8_t* absent;
  std::uint32_t* wrong;  ///< the largest of UINT32_MAX - number over tiles that aren't sound; 0: there are none
  std::uint32_t number;
  std::uint32_t pixels;
  NetworkOutput output;
  bool refuses_outside;  ///< `NetworkOutput::refuses_outside`
  SampleType sample;     ///< uint8 or uint16
};
/// Maps them as `map_values` does. Where they are not `MappedValues::sound` the tile is `absent`, which was 0. \throws
/// CudaError.
void map_tile(const TileValues& tile, cudaStream_t stream);

/// What is kept of tiles, in two rows, of which a row of tiles has one by its number's parity.
struct KeptTiles {
  StitchAxis x;
  StitchAxis y;
  const void* tiles;           ///< tile after tile, samples side by side, of `sample`
  const std::uint8_t* absent;  ///< of each
  const std::uint16_t* ramp;   ///< `stitch_ramp`
  std::int32_t channels;
  SampleType sample;
  bool labels;         ///< a label comes out instead of channels
  int ignore;          ///< the label where no tile is present
  std::uint32_t fill;  ///< where no tile is there
};
/// Makes `out.rect` as `StitchBand::gather` does. \throws CudaError.
void gather_tiles(const KeptTiles& kept, const PixelView<MemorySpace::device>& out, cudaStream_t stream);

/// Cuts a tile from whole rows of RGB, all that it needs. \throws CudaError.
void cut_mirrored(std::uint8_t* tile, const ConstPixelView<MemorySpace::device>& rows, const Rect& rect,
                  cudaStream_t stream);

}  // namespace slidestream::cuda
