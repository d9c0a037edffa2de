#include "cuda/jpeg2000/packets.cuh"

#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

/// Starts the four kernels of a wave in order on one stream: each takes what the one before it wrote.
void launch_packets(const Jpeg2000DeviceBatch& batch, std::uint32_t multiprocessors, cudaStream_t stream) {
  SLIDESTREAM_CUDA(cudaMemsetAsync(batch.counters, 0, sizeof(Jpeg2000Counters), stream));
  constexpr unsigned parse_threads = PacketShape::parse_threads, tiles_per_block = PacketShape::sort_threads / 32;
  parse_packets<<<(batch.tile_count + parse_threads - 1) / parse_threads, parse_threads, 0, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
  scan_bins<<<1, length_bins, length_bins * sizeof(std::uint32_t), stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
  sort_blocks<<<(batch.tile_count + tiles_per_block - 1) / tiles_per_block, PacketShape::sort_threads, 0, stream>>>(
      batch);
  SLIDESTREAM_CUDA_LAUNCHED();
  join_blocks<<<multiprocessors * PacketShape::join_blocks_per_multiprocessor, PacketShape::join_threads, 0, stream>>>(
      batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
