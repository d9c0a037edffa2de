#include <cuda_runtime.h>

#include "cuda/jpeg/component_layout.hpp"
#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg/octets.hpp"
#include "cuda/jpeg/stretches.cuh"
#include "cuda/jpeg/upsampling.hpp"
#include "runtime/cuda/check.hpp"

// From components to RGB in the plane. A warp takes a stretch of a tile, 256 columns and 32 rows: a lane eight columns,
// two rows at a time, through shared memory, so that rows leave it in whole vectors.

namespace slidestream::cuda {
namespace {

constexpr unsigned all_lanes = 0xFFFFFFFFU;
constexpr std::uint32_t row_bytes = 3 * stretch_columns;

/// A lane's octets. Quartets' neighbours come from the lanes beside, at the stretch's ends from memory. All lanes of
/// the warp ask at once; those beyond the tile stand at its last octet.
class WarpColumn : public OctetColumn {
 public:
  __device__ WarpColumn(const ComponentLayout& layout, const std::uint8_t* samples, std::uint32_t column, bool halves)
      : OctetColumn(layout, samples, column) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t last = layout.frame_width() / 8 - 1;
    is_first_ = column == 0;
    is_last_ = column == last;
    if (!halves) return;
    fetches_left_ = lane == 0 && !is_first_;
    fetches_right_ = lane == 31 && !is_last_;
    for (std::uint32_t c = 1; c < 3; ++c) {
      if (fetches_left_) ends_[c - 1] = layout.offset(c, 4 * column - 1, 0);
      if (fetches_right_) ends_[c - 1] = layout.offset(c, 4 * column + 4, 0);
    }
  }

  __device__ __forceinline__ Quartet quartet(std::uint32_t c, int row, std::uint32_t samples) const {
    std::uint32_t left = __shfl_up_sync(all_lanes, samples, 1) >> 24;
    std::uint32_t right = __shfl_down_sync(all_lanes, samples, 1) & 255U;
    if (is_first_) left = samples & 255U;
    if (is_last_) right = samples >> 24;
    if (fetches_left_) left = samples_[ends_[c - 1] + row_offset(row)];
    if (fetches_right_) right = samples_[ends_[c - 1] + row_offset(row)];
    return make_quartet(samples, left, right);
  }

 private:
  bool is_first_ = false;
  bool is_last_ = false;
  bool fetches_left_ = false;
  bool fetches_right_ = false;
  std::uint32_t ends_[2] = {};
};

/// A warp's two rows, from shared memory to the plane.
__device__ __forceinline__ void write_rows(const Stretch& stretch, const std::uint8_t* staged, std::uint32_t first_row,
                                           std::uint32_t lane) {
  const std::uint32_t bytes = 3 * min(stretch_columns, stretch.columns - stretch.first_column);
#pragma unroll
  for (std::uint32_t k = 0; k < 2 * row_bytes / 512; ++k) {
    const std::uint32_t at = 512 * k + 16 * lane;
    const std::uint32_t below = at >= row_bytes ? 1 : 0;
    const std::uint32_t in_row = at - below * row_bytes;
    const std::uint32_t y = first_row + below;
    if (y < stretch.first_row || y >= stretch.end_row || in_row >= bytes) continue;
    std::uint8_t* const to =
        stretch.to + static_cast<std::uint64_t>(y) * stretch.pitch + 3 * stretch.first_column + in_row;
    if (in_row + 16 <= bytes) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(staged + at);
    } else {
      for (std::uint32_t i = 0; i < bytes - in_row; ++i) to[i] = staged[at + i];
    }
  }
}

template <OctetKind kind>
__device__ __forceinline__ void convert_stretch(const ComponentLayout& layout, const std::uint8_t* samples,
                                                const Stretch& stretch, std::uint8_t* staged) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t column = min(stretch.first_column / 8 + lane, layout.frame_width() / 8 - 1);
  const WarpColumn source(layout, samples, column, kind == OctetKind::h2v2 || kind == OctetKind::h2v1);
  const auto sink = [&](int i, const std::uint32_t(&words)[12]) {
    __syncwarp();
#pragma unroll
    for (std::uint32_t k = 0; k < 6; ++k) {
      *reinterpret_cast<uint2*>(staged + k / 3 * row_bytes + 24 * lane + 8 * (k % 3)) =
          make_uint2(words[2 * k], words[2 * k + 1]);
    }
    __syncwarp();
    write_rows(stretch, staged, 2 * static_cast<std::uint32_t>(i), lane);
  };
  convert_octets<kind>(source, static_cast<int>(stretch.first_row / 2), static_cast<int>((stretch.end_row + 1) / 2),
                       sink);
}

/// Pixel by pixel, at any address.
__device__ __forceinline__ void convert_plainly(const ComponentLayout& layout, const std::uint8_t* samples,
                                                const Stretch& stretch, std::uint32_t first_wanted, bool inverted) {
  const std::uint32_t begin = max(stretch.first_column, first_wanted);
  const std::uint32_t end = min(stretch.first_column + stretch_columns, stretch.columns);
  for (std::uint32_t y = stretch.first_row; y < stretch.end_row; ++y) {
    for (std::uint32_t x = begin + threadIdx.x % 32; x < end; x += 32) {
      const Rgb rgb = rgb_at(layout, samples, inverted, x, y);
      std::uint8_t* const to = stretch.to + static_cast<std::uint64_t>(y) * stretch.pitch + 3 * x;
      to[0] = rgb.red;
      to[1] = rgb.green;
      to[2] = rgb.blue;
    }
  }
}

/// Tiles of one kind; for others blocks have nothing to do.
template <OctetKind kind>
__global__ void __launch_bounds__(32 * stretch_warps, 3) convert(const __grid_constant__ JpegDeviceBatch batch) {
  __shared__ __align__(16) std::uint8_t stages[stretch_warps][kind == OctetKind::none ? 16 : 2 * row_bytes];
  if (batch.verdicts[blockIdx.x] != 0) return;  // the CPU's
  const JpegDeviceTile tile = batch.tiles[blockIdx.x];
  if (kind_of(tile) != kind) return;
  const JpegCoding& coding = batch.codings[tile.coding];
  const ComponentLayout layout(coding, tile);
  const std::uint8_t* const samples = batch.components + std::uint64_t{64} * tile.first_block;
  std::uint8_t* const staged = stages[threadIdx.x / 32];
  for_each_stretch(tile, batch.plane + tile.origin, tile.pitch, [&](const Stretch& stretch) {
    if constexpr (kind == OctetKind::none) {
      convert_plainly(layout, samples, stretch, tile.first_column, (tile.flags & JpegDeviceTile::inverted) != 0);
    } else {
      convert_stretch<kind>(layout, samples, stretch, staged);
    }
  });
}

template <OctetKind kind>
void launch(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches, cudaStream_t stream) {
  if ((kinds >> static_cast<unsigned>(kind) & 1U) == 0) return;
  convert<kind><<<stretch_grid(batch.tile_count, most_stretches), 32 * stretch_warps, 0, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

void launch_convert(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches,
                    cudaStream_t stream) {
  launch<OctetKind::none>(batch, kinds, most_stretches, stream);
  launch<OctetKind::h2v2>(batch, kinds, most_stretches, stream);
  launch<OctetKind::h2v1>(batch, kinds, most_stretches, stream);
  launch<OctetKind::full>(batch, kinds, most_stretches, stream);
  launch<OctetKind::full_rgb>(batch, kinds, most_stretches, stream);
}

}  // namespace slidestream::cuda
