#include "cuda/colour/every_colour.hpp"

#include "cuda/colour/every_colour.cuh"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

void make_every_colour(const ColourProgram* program, std::uint32_t* every, cudaStream_t stream) {
  make_every<<<EveryColourShape::blocks, EveryColourShape::threads, 0, stream>>>(program, every);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
