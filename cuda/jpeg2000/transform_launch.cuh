#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cuda/jpeg2000/device_batch.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/shared_memory.hpp"

/// \file
/// Launches kernels that end in pixels, of which there is one for each wavelet.

namespace slidestream::cuda {

struct TransformKernels {
  void (*reversible)(Jpeg2000DeviceBatch);
  void (*irreversible)(Jpeg2000DeviceBatch);
};

/// Thread blocks that take tiles by turns: no more than run at a time, and than there is memory for with `floats` each.
inline std::uint32_t blocks_by_turns(const Jpeg2000DeviceBatch& batch, std::uint32_t at_a_time, std::size_t floats) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>({at_a_time, batch.colour_capacity / floats, batch.tile_count}));
}

/// \param shared  bytes of dynamic shared memory.
inline void launch_either(const TransformKernels& kernels, bool reversible, std::uint32_t blocks, unsigned threads,
                          std::size_t shared, const Jpeg2000DeviceBatch& batch, cudaStream_t stream) {
  auto* const kernel = reversible ? kernels.reversible : kernels.irreversible;
  runtime::cuda::allow_shared_memory(kernel, shared);
  kernel<<<blocks, threads, shared, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
