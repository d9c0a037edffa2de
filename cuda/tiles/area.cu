#include "cuda/tiles/area.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

void make_areas(const AreaPiece* pieces, std::size_t count, std::int64_t factor, cudaStream_t stream) {
  if (count == 0) return;
  make_area_pieces<<<static_cast<unsigned>(count * AreaShape::blocks_per_piece), AreaShape::threads, 0, stream>>>(
      pieces, factor, AreaMean::of(factor));
  SLIDESTREAM_CUDA_LAUNCHED();
}

void make_areas(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
                std::int64_t factor, cudaStream_t stream) {
  const AreaPiece piece = area_piece(out, in, factor);
  const std::uint32_t across = (piece.width + AreaShape::threads - 1) / AreaShape::threads;
  make_area_rows<<<across * piece.height, AreaShape::threads, 0, stream>>>(piece, across, factor, AreaMean::of(factor));
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda

void slidestream::resample_area(const PixelView<MemorySpace::device>& out,
                                const ConstPixelView<MemorySpace::device>& in, std::int64_t factor, void* stream) {
  cuda::make_areas(out, in, factor, static_cast<cudaStream_t>(stream));
}
