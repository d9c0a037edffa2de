#include <cuda_fp16.h>

#include "cuda/networks/labels.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

struct OfHalf {
  __device__ float operator()(std::uint16_t bits) const { return __half2float(__ushort_as_half(bits)); }
};

template <class Widen, class Score>
void enqueue(std::uint16_t* labels, const Score* scores, std::size_t channels, std::size_t voxels,
             cudaStream_t stream) {
  if (voxels == 0) return;
  const LabelsTask<Score> task = {scores, labels, voxels, static_cast<std::uint32_t>(channels)};
  choose_labels<Widen, Score><<<labels_blocks(task), LabelsShape::threads, 0, stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

void enqueue_labels(std::uint16_t* labels, const float* scores, std::size_t channels, std::size_t voxels,
                    cudaStream_t stream) {
  enqueue<AsFloat>(labels, scores, channels, voxels, stream);
}

void enqueue_labels(std::uint16_t* labels, const std::uint16_t* scores, std::size_t channels, std::size_t voxels,
                    cudaStream_t stream) {
  enqueue<OfHalf>(labels, scores, channels, voxels, stream);
}

}  // namespace slidestream::cuda
