#include "cuda/jpeg2000/large.cuh"

#include "cuda/jpeg2000/transform_launch.cuh"

namespace slidestream::cuda {

void launch_large(const Jpeg2000DeviceBatch& batch, bool reversible, std::uint32_t multiprocessors,
                  cudaStream_t stream) {
  const std::uint32_t at_a_time = multiprocessors * LargeShape::blocks_per_multiprocessor;
  launch_either({transform_large<Wavelet53>, transform_large<Wavelet97>}, reversible,
                blocks_by_turns(batch, at_a_time, large_floats(batch.large_side)), LargeShape::threads,
                sizeof(LargeMemory), batch, stream);
}

}  // namespace slidestream::cuda
