#include "cuda/jpeg2000/blocks.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

// With few blocks all wait for the longest, and the more decisions are made in a row the sooner it is done.
constexpr std::uint32_t few_blocks = 100000;

template <int steps>
void launch(const Jpeg2000DeviceBatch& batch, std::uint32_t multiprocessors, cudaStream_t stream) {
  constexpr std::uint32_t shared = BlockShape::shared_bytes;
  SLIDESTREAM_CUDA(cudaFuncSetAttribute(decode_blocks<steps>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  decode_blocks<steps><<<multiprocessors, BlockShape::threads, shared, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

void launch_blocks(const Jpeg2000DeviceBatch& batch, std::uint32_t multiprocessors, cudaStream_t stream) {
  if (batch.block_count < few_blocks) {
    launch<4>(batch, multiprocessors, stream);
  } else {
    launch<3>(batch, multiprocessors, stream);
  }
}

}  // namespace slidestream::cuda
