#include <cuda_runtime.h>

#include "cuda/jpeg/component_layout.hpp"
#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg/octets.hpp"
#include "cuda/jpeg/stretches.cuh"
#include "cuda/jpeg/upsampling.hpp"
#include "runtime/cuda/check.hpp"

// Luminance of tiles whose components wait to become RGB: mostly the first of them, block after block, into rows.

namespace slidestream::cuda {
namespace {

/// Rows that a lane asks for before it writes the first.
constexpr std::uint32_t rows_at_a_time = 8;

/// A lane has eight columns.
__device__ __forceinline__ void gather_octets(const ComponentLayout& layout, const std::uint8_t* samples,
                                              const Stretch& stretch) {
  const std::uint32_t x = stretch.first_column + 8 * (threadIdx.x % 32);
  if (x >= stretch.columns) return;
  const OctetColumn source(layout, samples, x / 8);
  const std::uint32_t wanted = min(8U, stretch.columns - x);
  for (std::uint32_t y = stretch.first_row; y < stretch.end_row; y += rows_at_a_time) {
    Octet octets[rows_at_a_time];
#pragma unroll
    for (std::uint32_t i = 0; i < rows_at_a_time; ++i) octets[i] = source.octet(0, static_cast<int>(y + i));
#pragma unroll
    for (std::uint32_t i = 0; i < rows_at_a_time; ++i) {
      if (y + i >= stretch.end_row) break;
      std::uint8_t* const to = stretch.to + static_cast<std::uint64_t>(y + i) * stretch.pitch + x;
      if (wanted == 8) {
        *reinterpret_cast<uint2*>(to) = make_uint2(octets[i].low, octets[i].high);
      } else {
        for (std::uint32_t b = 0; b < wanted; ++b) {
          to[b] = static_cast<std::uint8_t>((b < 4 ? octets[i].low : octets[i].high) >> (8 * (b % 4)));
        }
      }
    }
  }
}

/// Pixel by pixel, at any address.
__device__ __forceinline__ void gather_plainly(const ComponentLayout& layout, const std::uint8_t* samples,
                                               const Stretch& stretch, std::uint32_t first_wanted, bool inverted) {
  const std::uint32_t begin = max(stretch.first_column, first_wanted);
  const std::uint32_t end = min(stretch.first_column + stretch_columns, stretch.columns);
  for (std::uint32_t y = stretch.first_row; y < stretch.end_row; ++y) {
    for (std::uint32_t x = begin + threadIdx.x % 32; x < end; x += 32) {
      stretch.to[static_cast<std::uint64_t>(y) * stretch.pitch + x] = luminance_at(layout, samples, inverted, x, y);
    }
  }
}

__global__ void __launch_bounds__(32 * stretch_warps) gather_luminance(const __grid_constant__ JpegDeviceBatch batch) {
  if (batch.verdicts[blockIdx.x] != 0) return;  // the CPU's
  const JpegDeviceTile tile = batch.tiles[blockIdx.x];
  const JpegDeviceLuminance luminance = batch.luminance[blockIdx.x];
  const ComponentLayout layout(batch.codings[tile.coding], tile);
  const std::uint8_t* const samples = batch.components + std::uint64_t{64} * tile.first_block;
  std::uint8_t* const to = batch.plane + luminance.origin;
  const bool octets =
      has_luminance_octets(kind_of(tile)) && (reinterpret_cast<std::uintptr_t>(to) | luminance.pitch) % 8 == 0;
  for_each_stretch(tile, to, luminance.pitch, [&](const Stretch& stretch) {
    if (octets) {
      gather_octets(layout, samples, stretch);
    } else {
      gather_plainly(layout, samples, stretch, tile.first_column, (tile.flags & JpegDeviceTile::inverted) != 0);
    }
  });
}

}  // namespace

void launch_luminance(const JpegDeviceBatch& batch, std::uint32_t most_stretches, cudaStream_t stream) {
  gather_luminance<<<stretch_grid(batch.tile_count, most_stretches), 32 * stretch_warps, 0, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
