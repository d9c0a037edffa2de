#include "cuda/tiles/windows.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

void place_windows(const std::uint8_t* decoded, const WindowPiece* pieces, std::size_t count, const WindowShape& shape,
                   cudaStream_t stream) {
  if (count == 0) return;
  place_pieces<<<static_cast<unsigned>(count * kBlocksPerPiece), kThreads, 0, stream>>>(decoded, pieces, shape);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
