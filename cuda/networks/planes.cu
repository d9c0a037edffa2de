#include <cuda_fp16.h>

#include "cuda/networks/planes.cuh"

#include "cuda/networks/planes.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

template <class Sample>
void enqueue(Sample* planes, const std::uint8_t* pixels, const Sample* table, std::size_t area, std::size_t tiles,
             cudaStream_t stream) {
  if (area == 0 || tiles == 0) return;
  const std::size_t runs = (area + PlanesShape::pixels - 1) / PlanesShape::pixels;
  const PlanesTask<Sample> task = {pixels,
                                   planes,
                                   table,
                                   static_cast<std::uint32_t>(area),
                                   static_cast<std::uint32_t>(runs),
                                   static_cast<std::uint32_t>(tiles)};
  make_planes<Sample><<<planes_blocks(task), PlanesShape::threads, 0, stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

__global__ void __launch_bounds__(PlanesShape::threads)
    widen(float* values, const std::uint16_t* halves, std::uint64_t count) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * PlanesShape::threads + threadIdx.x;
  if (i < count) values[i] = __half2float(__ushort_as_half(halves[i]));
}

}  // namespace

void enqueue_planes(float* planes, const std::uint8_t* pixels, const float* table, std::size_t area, std::size_t tiles,
                    cudaStream_t stream) {
  enqueue(planes, pixels, table, area, tiles, stream);
}

void enqueue_planes(std::uint16_t* planes, const std::uint8_t* pixels, const std::uint16_t* table, std::size_t area,
                    std::size_t tiles, cudaStream_t stream) {
  enqueue(planes, pixels, table, area, tiles, stream);
}

void enqueue_widened(float* values, const std::uint16_t* halves, std::size_t count, cudaStream_t stream) {
  if (count == 0) return;
  const std::size_t blocks = (count + PlanesShape::threads - 1) / PlanesShape::threads;
  widen<<<static_cast<unsigned>(blocks), PlanesShape::threads, 0, stream>>>(values, halves, count);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
