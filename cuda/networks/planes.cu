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

}  // namespace

void enqueue_planes(float* planes, const std::uint8_t* pixels, const float* table, std::size_t area, std::size_t tiles,
                    cudaStream_t stream) {
  enqueue(planes, pixels, table, area, tiles, stream);
}

void enqueue_planes(std::uint16_t* planes, const std::uint8_t* pixels, const std::uint16_t* table, std::size_t area,
                    std::size_t tiles, cudaStream_t stream) {
  enqueue(planes, pixels, table, area, tiles, stream);
}

}  // namespace slidestream::cuda
