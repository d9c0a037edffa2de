#include "cuda/tiles/stitch.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

void map_tile(const TileValues& tile, cudaStream_t stream) {
  const std::uint32_t blocks = blocks_across(tile.pixels);
  if (tile.sample == SampleType::uint8) {
    map_tile_values<std::uint8_t>
        <<<blocks, stitch_threads, 0, stream>>>(tile, 255.0F / (tile.output.high - tile.output.low));
  } else {
    map_tile_values<std::uint16_t>
        <<<blocks, stitch_threads, 0, stream>>>(tile, 65535.0F / (tile.output.high - tile.output.low));
  }
  SLIDESTREAM_CUDA_LAUNCHED();
}

void gather_tiles(const KeptTiles& kept, const PixelView<MemorySpace::device>& out, cudaStream_t stream) {
  const std::uint32_t across = blocks_across(out.rect.width);
  const auto blocks = static_cast<std::uint32_t>(across * out.rect.height);
  if (blocks == 0) return;
  if (kept.sample == SampleType::uint8) {
    gather_pixels<std::uint8_t><<<blocks, stitch_threads, 0, stream>>>(kept, out.data, out.pitch, out.rect, across);
  } else {
    gather_pixels<std::uint16_t><<<blocks, stitch_threads, 0, stream>>>(kept, out.data, out.pitch, out.rect, across);
  }
  SLIDESTREAM_CUDA_LAUNCHED();
}

void cut_mirrored(std::uint8_t* tile, const ConstPixelView<MemorySpace::device>& rows, const Rect& rect,
                  cudaStream_t stream) {
  const std::uint32_t across = blocks_across(rect.width);
  const auto blocks = static_cast<std::uint32_t>(across * rect.height);
  if (blocks == 0) return;
  cut_pixels<<<blocks, stitch_threads, 0, stream>>>(tile, rows, rect, across);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
