#pragma once

#include <cstdint>

#include "cuda/networks/labels.hpp"

/// \file
/// The channel with the largest score of each voxel. Neighbouring threads read neighbouring scores of one channel.

namespace slidestream::cuda {

namespace {

struct LabelsShape {
  static constexpr int threads = 256;  ///< a voxel each
};

template <class Score>
struct LabelsTask {
  const Score* scores;    ///< channels x voxels
  std::uint16_t* labels;  ///< voxels
  std::uint64_t voxels;
  std::uint32_t channels;
};

template <class Score>
unsigned labels_blocks(const LabelsTask<Score>& task) {
  return static_cast<unsigned>((task.voxels + LabelsShape::threads - 1) / LabelsShape::threads);
}

/// Scores that are float32 already.
struct AsFloat {
  __device__ float operator()(float score) const { return score; }
};

/// \tparam Widen  makes a float of a score
template <class Widen, class Score>
__global__ void __launch_bounds__(LabelsShape::threads) choose_labels(const __grid_constant__ LabelsTask<Score> task) {
  const std::uint64_t voxel = std::uint64_t{blockIdx.x} * LabelsShape::threads + threadIdx.x;
  if (voxel >= task.voxels) return;
  const Score* from = task.scores + voxel;
  float largest = Widen{}(*from);
  // 0 as long as all are finite.
  float rest = largest - largest;
  std::uint32_t label = 0;
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
  for (std::uint32_t channel = 1; channel < task.channels; ++channel) {
    from += task.voxels;
    const float score = Widen{}(*from);
    rest += score - score;
    if (score > largest) {
      largest = score;
      label = channel;
    }
  }
  task.labels[voxel] = rest == 0.0F ? static_cast<std::uint16_t>(label) : no_label;
}

}  // namespace

}  // namespace slidestream::cuda
