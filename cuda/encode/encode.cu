#include "cuda/encode/encode.hpp"

#include <algorithm>

#include "cuda/encode/encode_batch.hpp"
#include "cuda/encode/encode_kernel.cuh"
#include "cuda/encode/pack_kernel.cuh"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

/// Blocks that a multiprocessor of a Hopper GPU holds at once: by their shared memory and 64 K registers.
constexpr std::uint32_t grey_blocks = 5;
constexpr std::uint32_t colour_blocks = 3;
constexpr std::uint32_t halved_blocks = 4;
constexpr std::uint32_t whole_colour_blocks = 5;

__global__ void __launch_bounds__(TileGreyBand::threads, grey_blocks)
    encode_grey(const __grid_constant__ EncodeTask task) {
  encode_tiles<TileGreyBand>(task);
}
__global__ void __launch_bounds__(ColourBand::threads, colour_blocks)
    encode_colour(const __grid_constant__ EncodeTask task) {
  encode_tiles<ColourBand>(task);
}
__global__ void __launch_bounds__(HalvedBand::threads, halved_blocks)
    encode_halved(const __grid_constant__ EncodeTask task) {
  encode_tiles<HalvedBand>(task);
}
__global__ void __launch_bounds__(WholeColourBand::threads, whole_colour_blocks)
    encode_whole_colour(const __grid_constant__ EncodeTask task) {
  encode_tiles<WholeColourBand>(task);
}
__global__ void __launch_bounds__(offset_threads) offsets(const __grid_constant__ EncodeTask task) {
  sum_lengths(task);
}
__global__ void __launch_bounds__(32 * pack_warps) pack(const __grid_constant__ EncodeTask task) { pack_bands(task); }

template <class Band, class Kernel>
void launch(const EncodeTask& task, Kernel kernel, std::uint32_t blocks, cudaStream_t stream) {
  kernel<<<std::min(task.tile_count, blocks), Band::threads, sizeof(typename Band::Memory), stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

void prepare_encode() {
  SLIDESTREAM_CUDA(cudaFuncSetAttribute(encode_grey, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(sizeof(TileGreyBand::Memory))));
  SLIDESTREAM_CUDA(cudaFuncSetAttribute(encode_colour, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(sizeof(ColourBand::Memory))));
  SLIDESTREAM_CUDA(cudaFuncSetAttribute(encode_halved, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(sizeof(HalvedBand::Memory))));
  SLIDESTREAM_CUDA(cudaFuncSetAttribute(encode_whole_colour, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(sizeof(WholeColourBand::Memory))));
}

void launch_encode(const EncodeTask& task, std::uint32_t multiprocessors, cudaStream_t stream) {
  if (task.channels == 1) {
    launch<TileGreyBand>(task, encode_grey, grey_blocks * multiprocessors, stream);
  } else if (task.mcu_blocks == HalvedBand::blocks) {
    launch<HalvedBand>(task, encode_halved, halved_blocks * multiprocessors, stream);
  } else if (task.mcu_blocks == WholeColourBand::blocks) {
    launch<WholeColourBand>(task, encode_whole_colour, whole_colour_blocks * multiprocessors, stream);
  } else {
    launch<ColourBand>(task, encode_colour, colour_blocks * multiprocessors, stream);
  }
}

void launch_pack(const EncodeTask& task, cudaStream_t stream) {
  offsets<<<1, offset_threads, sizeof(OffsetMemory), stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
  if (task.tile_count == 0) return;
  const std::uint64_t bands = std::uint64_t{task.tile_count} * task.grid.bands;
  const auto blocks = static_cast<std::uint32_t>((bands + pack_warps - 1) / pack_warps);
  pack<<<blocks, 32 * pack_warps, pack_warps * sizeof(PackStage), stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
