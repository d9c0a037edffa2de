#pragma once

#include "cuda/tiles/fronts.hpp"

/// \file
/// The kernel of `gather_fronts`. Included where kernels are compiled, and by what runs them on the host.

namespace slidestream::cuda {
namespace {

struct FrontShape {
  static constexpr unsigned warp = 32;
  static constexpr unsigned threads = 128;
  static constexpr unsigned tiles = threads / warp;  ///< of a block
};

/// A warp a tile. Tiles begin anywhere, so bytes go one by one: there are few of them.
__global__ void copy_fronts(std::byte* to, std::size_t room, const std::byte* compressed, const TileFront* fronts,
                            std::size_t count) {
  const std::size_t tile = std::size_t{blockIdx.x} * FrontShape::tiles + threadIdx.x / FrontShape::warp;
  if (tile >= count) return;
  const TileFront front = fronts[tile];
  for (std::uint32_t i = threadIdx.x % FrontShape::warp; i < front.bytes; i += FrontShape::warp) {
    to[tile * room + i] = compressed[front.offset + i];
  }
}

}  // namespace
}  // namespace slidestream::cuda
