#include "cuda/tiles/fronts.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

void gather_fronts(std::byte* to, std::size_t room, const std::byte* compressed, const TileFront* fronts,
                   std::size_t count, cudaStream_t stream) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>((count + FrontShape::tiles - 1) / FrontShape::tiles);
  copy_fronts<<<blocks, FrontShape::threads, 0, stream>>>(to, room, compressed, fronts, count);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
