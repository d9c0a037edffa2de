#include <algorithm>

#include "codec/luminance.hpp"
#include "codec/ycbcr.hpp"
#include "cuda/tiles/place.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

/// A warp writes a row at a time, 4 bytes a thread; a block shares a tile, so that its description is read once.
constexpr unsigned kThreads = 256;
constexpr unsigned kBytesPerThread = 4;
/// Tiles are at most this many to a launch: the grid's second dimension.
constexpr std::size_t kMostTiles = 65535;
/// Blocks that share a tile.
constexpr unsigned kBlocksPerTile = 4;

/// Byte `i` of a row of pixels: luminance, or interleaved RGB.
template <Colour colour, unsigned channels>
__device__ unsigned byte_of(const std::uint8_t* from, std::uint32_t samples, std::uint32_t i) {
  const std::uint8_t* at = from + static_cast<std::size_t>(i / channels) * samples;
  if constexpr (colour == Colour::grey_inverted) return 255U - at[0];
  if constexpr (colour == Colour::grey) return at[0];
  if constexpr (channels == 1) return colour == Colour::rgb ? luminance(at[0], at[1], at[2]) : at[0];
  if constexpr (colour == Colour::rgb) return at[i % channels];
  const Rgb rgb = ycbcr_to_rgb(at[0], at[1], at[2]);
  return i % channels == 0 ? rgb.red : i % channels == 1 ? rgb.green : rgb.blue;
}

template <Colour colour, unsigned channels>
__global__ void __launch_bounds__(kThreads) place(std::uint8_t* plane, std::ptrdiff_t pitch, const std::uint8_t* bytes,
                                                  const PlacedTile* tiles, SampleLayout layout) {
  const PlacedTile tile = tiles[blockIdx.y];
  constexpr unsigned rows_at_a_time = kThreads / 32;
  const unsigned lane = threadIdx.x % 32;
  for (std::uint32_t y = blockIdx.x * rows_at_a_time + threadIdx.x / 32; y < tile.height;
       y += gridDim.x * rows_at_a_time) {
    std::uint8_t* to =
        plane + (channels == 1 ? tile.destination : tile.rgb_destination) + static_cast<std::ptrdiff_t>(y) * pitch;
    // Whole words of the plane, and single bytes where a row begins or ends within one.
    const auto before = static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to) & 3U);
    const std::uint8_t* from = tile.source == PlacedTile::white
                                   ? nullptr
                                   : bytes + tile.source + static_cast<std::size_t>(y) * layout.row_bytes;
    const auto value = [&](std::uint32_t x) -> unsigned {
      return from == nullptr ? 255U : byte_of<colour, channels>(from, layout.samples, x);
    };
    const std::uint32_t bytes_wanted = channels * tile.width;
    const std::uint32_t head = min(before, bytes_wanted);
    if (lane < head) to[lane] = static_cast<std::uint8_t>(value(lane));
    const std::uint32_t words = (bytes_wanted - head) / kBytesPerThread;
    for (std::uint32_t word = lane; word < words; word += 32) {
      const std::uint32_t x = head + word * kBytesPerThread;
      const unsigned packed = value(x) | value(x + 1) << 8 | value(x + 2) << 16 | value(x + 3) << 24;
      *reinterpret_cast<unsigned*>(to + x) = packed;
    }
    for (std::uint32_t x = head + words * kBytesPerThread + lane; x < bytes_wanted; x += 32) {
      to[x] = static_cast<std::uint8_t>(value(x));
    }
  }
}

template <Colour colour, unsigned channels>
void launch(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
            std::size_t count, const SampleLayout& layout, cudaStream_t stream) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(bytes);
  for (std::size_t first = 0; first < count; first += kMostTiles) {
    const dim3 grid(kBlocksPerTile, static_cast<unsigned>(std::min(kMostTiles, count - first)));
    place<colour, channels><<<grid, kThreads, 0, stream>>>(plane, pitch, from, tiles + first, layout);
    SLIDESTREAM_CUDA_LAUNCHED();
  }
}

template <unsigned channels>
void launch_for(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                std::size_t count, const SampleLayout& layout, cudaStream_t stream) {
  const auto put = [&](auto kernels) { kernels(plane, pitch, bytes, tiles, count, layout, stream); };
  if (layout.colour == Colour::grey_inverted) return put(launch<Colour::grey_inverted, channels>);
  // Less than three samples are grey.
  if (layout.colour == Colour::rgb && layout.samples >= 3) return put(launch<Colour::rgb, channels>);
  if constexpr (channels == 3) {
    if (layout.colour == Colour::ycbcr && layout.samples >= 3) return put(launch<Colour::ycbcr, channels>);
  }
  put(launch<Colour::grey, channels>);
}

}  // namespace

void place_tiles(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                 std::size_t count, const SampleLayout& layout, cudaStream_t stream) {
  launch_for<1>(plane, pitch, bytes, tiles, count, layout, stream);
}

void place_rgb_tiles(std::uint8_t* plane, std::ptrdiff_t pitch, const std::byte* bytes, const PlacedTile* tiles,
                     std::size_t count, const SampleLayout& layout, cudaStream_t stream) {
  launch_for<3>(plane, pitch, bytes, tiles, count, layout, stream);
}

}  // namespace slidestream::cuda
