#include "cuda/jpeg2000/blocks.cuh"

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/shared_memory.hpp"

namespace slidestream::cuda {
namespace {

constexpr std::uint32_t few_lanes = 6;

}  // namespace

void launch_blocks(const Jpeg2000DeviceBatch& batch, bool styled, std::uint32_t multiprocessors, cudaStream_t stream) {
  constexpr std::uint32_t shared = BlockShape::shared_bytes;
  auto* const kernel = styled ? decode_blocks<true> : decode_blocks<false>;
  runtime::cuda::allow_shared_memory(kernel, shared);
  // With blocks for less than all lanes.
  const bool few = batch.block_count < multiprocessors * BlockShape::threads;
  kernel<<<multiprocessors, BlockShape::threads, shared, stream>>>(batch, few ? few_lanes : 32);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
