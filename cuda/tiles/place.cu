#include <algorithm>

#include "cuda/tiles/place.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

/// A warp writes a row at a time, 4 pixels a thread; a block shares a tile, so that its description is read once.
constexpr unsigned kThreads = 256;
constexpr unsigned kPixelsPerThread = 4;
/// Tiles are at most this many to a launch: the grid's second dimension.
constexpr std::size_t kMostTiles = 65535;
/// Blocks that share a tile.
constexpr unsigned kBlocksPerTile = 4;

template <Colour colour>
__device__ unsigned pixel(const std::uint8_t* from, std::uint32_t samples, std::uint32_t x) {
  const std::uint8_t* at = from + static_cast<std::size_t>(x) * samples;
  if constexpr (colour == Colour::rgb) return (19595U * at[0] + 38470U * at[1] + 7471U * at[2] + 32768U) >> 16;
  if constexpr (colour == Colour::grey_inverted) return 255U - at[0];
  return at[0];
}

template <Colour colour>
__global__ void __launch_bounds__(kThreads) place(std::uint8_t* plane, std::ptrdiff_t pitch, const std::uint8_t* bytes,
                                                  const PlacedTile* tiles, SampleLayout layout) {
  const PlacedTile tile = tiles[blockIdx.y];
  constexpr unsigned rows_at_a_time = kThreads / 32;
  const unsigned lane = threadIdx.x % 32;
  for (std::uint32_t y = blockIdx.x * rows_at_a_time + threadIdx.x / 32; y < tile.height;
       y += gridDim.x * rows_at_a_time) {
    std::uint8_t* to = plane + tile.destination + static_cast<std::ptrdiff_t>(y) * pitch;
    // Whole words of the plane, and single pixels where a row begins or ends within one.
    const auto before = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to) & 3U);
    const std::uint8_t* from = tile.source == PlacedTile::white
                                   ? nullptr
                                   : bytes + tile.source + static_cast<std::size_t>(y) * layout.row_bytes;
    const auto value = [&](std::uint32_t x) -> unsigned {
      return from == nullptr ? 255U : pixel<colour>(from, layout.samples, x);
    };
    const std::uint32_t head = min(before, tile.width);
    if (lane < head) to[lane] = static_cast<std::uint8_t>(value(lane));
    const std::uint32_t words = (tile.width - head) / kPixelsPerThread;
    for (std::uint32_t word = lane; word < words; word += 32) {
      const std::uint32_t x = head + word * kPixelsPerThread;
      const unsigned packed = value(x) | value(x + 1) << 8 | value(x + 2) << 16 | value(x + 3) << 24;
      *reinterpret_cast<unsigned*>(to + x) = packed;
    }
    for (std::uint32_t x = head + words * kPixelsPerThread + lane; x < tile.width; x += 32) {
      to[x] = static_cast<std::uint8_t>(value(x));
    }
  }
}

}  // namespace

void place_tiles(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                 std::size_t count, const SampleLayout& layout, cudaStream_t stream) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes);
  for (std::size_t first = 0; first < count; first += kMostTiles) {
    const dim3 grid(kBlocksPerTile, static_cast<unsigned>(std::min(kMostTiles, count - first)));
    switch (layout.colour) {
      case Colour::rgb:
        place<Colour::rgb><<<grid, kThreads, 0, stream>>>(plane, pitch, from, tiles + first, layout);
        break;
      case Colour::grey_inverted:
        place<Colour::grey_inverted><<<grid, kThreads, 0, stream>>>(plane, pitch, from, tiles + first, layout);
        break;
      case Colour::grey:
      case Colour::ycbcr:
        place<Colour::grey><<<grid, kThreads, 0, stream>>>(plane, pitch, from, tiles + first, layout);
        break;
    }
    SLIDESTREAM_CUDA_LAUNCHED();
  }
}

}  // namespace slidestream::cuda
