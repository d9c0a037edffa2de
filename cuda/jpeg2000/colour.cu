#include "cuda/jpeg2000/colour.cuh"

#include "cuda/jpeg2000/transform_launch.cuh"

namespace slidestream::cuda {

void launch_colour(const Jpeg2000DeviceBatch& batch, bool reversible, std::uint32_t multiprocessors,
                   cudaStream_t stream) {
  const std::uint32_t at_a_time = multiprocessors * TransformShape::blocks_per_multiprocessor;
  launch_either({transform_colour<Wavelet53>, transform_colour<Wavelet97>}, reversible,
                blocks_by_turns(batch, at_a_time, colour_floats), TransformShape::threads, sizeof(TransformMemory),
                batch, stream);
}

}  // namespace slidestream::cuda
