#include "cuda/tiles/place_converted.cuh"

#include <algorithm>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/shared_memory.hpp"

namespace slidestream::cuda {

void place_converted_tiles(const ConvertedPlanes& planes, const std::byte* bytes, const PlacedTile* tiles,
                           std::size_t count, const SampleLayout& layout, const DeviceColours& colours,
                           cudaStream_t stream) {
  if (count == 0) return;
  const ConvertedTask task = {
      planes, reinterpret_cast<const std::uint8_t*>(bytes), tiles, static_cast<std::uint32_t>(count), layout, colours};
  const dim3 grid(ConvertedShape::blocks_per_tile,
                  static_cast<unsigned>(std::min<std::size_t>(count, ConvertedShape::most_rows)));
  if (colours_by(colours) == ColoursBy::matrix) {
    runtime::cuda::allow_shared_memory(place_converted<ColoursBy::matrix>, SharedColours::bytes);
    place_converted<ColoursBy::matrix><<<grid, ConvertedShape::threads, SharedColours::bytes, stream>>>(task);
  } else {
    place_converted<ColoursBy::every><<<grid, ConvertedShape::threads, 0, stream>>>(task);
  }
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
