#include "cuda/jpeg2000/transform.cuh"

#include "cuda/jpeg2000/transform_launch.cuh"

namespace slidestream::cuda {

void launch_transform(const Jpeg2000DeviceBatch& batch, bool reversible, cudaStream_t stream) {
  launch_either({transform_tiles<Wavelet53>, transform_tiles<Wavelet97>}, reversible, batch.tile_count,
                TransformShape::threads, sizeof(TransformMemory), batch, stream);
}

}  // namespace slidestream::cuda
