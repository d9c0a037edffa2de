#include "cuda/jpeg2000/transform.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

template <class Wavelet>
void launch(const Jpeg2000DeviceBatch& batch, cudaStream_t stream) {
  constexpr auto shared = static_cast<int>(sizeof(TransformMemory));
  SLIDESTREAM_CUDA(cudaFuncSetAttribute(transform_tiles<Wavelet>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  transform_tiles<Wavelet><<<batch.tile_count, TransformShape::threads, shared, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

void launch_transform(const Jpeg2000DeviceBatch& batch, bool reversible, cudaStream_t stream) {
  if (reversible) {
    launch<Wavelet53>(batch, stream);
  } else {
    launch<Wavelet97>(batch, stream);
  }
}

}  // namespace slidestream::cuda
