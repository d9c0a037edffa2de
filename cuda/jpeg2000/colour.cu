#include "cuda/jpeg2000/colour.cuh"

#include <algorithm>

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

template <class Wavelet>
void launch(const Jpeg2000DeviceBatch& batch, std::uint32_t multiprocessors, cudaStream_t stream) {
  constexpr auto shared = static_cast<int>(sizeof(TransformMemory));
  SLIDESTREAM_CUDA(
      cudaFuncSetAttribute(transform_colour<Wavelet>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  const std::uint64_t blocks = std::min<std::uint64_t>({multiprocessors * TransformShape::blocks_per_multiprocessor,
                                                        batch.colour_capacity / colour_floats, batch.tile_count});
  transform_colour<Wavelet><<<static_cast<unsigned>(blocks), TransformShape::threads, shared, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

void launch_colour(const Jpeg2000DeviceBatch& batch, bool reversible, std::uint32_t multiprocessors,
                   cudaStream_t stream) {
  if (reversible) {
    launch<Wavelet53>(batch, multiprocessors, stream);
  } else {
    launch<Wavelet97>(batch, multiprocessors, stream);
  }
}

}  // namespace slidestream::cuda
