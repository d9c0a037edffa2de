#include "cuda/jpeg2000/blocks.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

constexpr std::uint32_t few_lanes = 6;

}  // namespace

void launch_blocks(const Jpeg2000DeviceBatch& batch, std::uint32_t multiprocessors, cudaStream_t stream) {
  constexpr std::uint32_t shared = BlockShape::shared_bytes;
  SLIDESTREAM_CUDA(
      cudaFuncSetAttribute(decode_blocks, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  // With blocks for less than all lanes.
  const bool few = batch.block_count < multiprocessors * BlockShape::threads;
  decode_blocks<<<multiprocessors, BlockShape::threads, shared, stream>>>(batch, few ? few_lanes : 32);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
