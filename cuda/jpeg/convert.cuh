#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/colour/device_convert.cuh"
#include "cuda/device/primitives.cuh"
#include "cuda/jpeg/component_layout.hpp"
#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg/octets.hpp"
#include "cuda/jpeg/stretches.cuh"
#include "cuda/jpeg/upsampling.hpp"

/// \file
/// From components to RGB in the plane, and to luminance beside it where the batch wants both. A warp takes a stretch
/// of a tile, 256 columns and 32 rows: a lane eight columns, two rows at a time. RGB goes through shared memory, so
/// that its rows leave it in whole vectors; a lane's luminance is one. Where colours are converted, that happens in
/// between, and luminance is made of what comes out.

namespace slidestream::cuda {
namespace {

constexpr std::uint32_t row_bytes = 3 * stretch_columns;

/// A lane's octets. Quartets' neighbours come from the lanes beside, at the stretch's ends from memory. All lanes of
/// the warp ask at once; those beyond the tile stand at its last octet.
class WarpColumn : public OctetColumn {
 public:
  __device__ WarpColumn(const ComponentLayout& layout, const std::uint8_t* samples, std::uint32_t column, bool halves,
                        bool inverted)
      : OctetColumn(layout, samples, column, inverted) {
    const std::uint32_t lane = threadIdx.x % 32;
    const std::uint32_t last = layout.frame_width() / 8 - 1;
    is_first_ = column == 0;
    is_last_ = column == last;
    if (!halves) return;
    fetches_left_ = lane == 0 && !is_first_;
    fetches_right_ = lane == 31 && !is_last_;
    if (fetches_left_) end_ = layout.offset(1, 4 * column - 1, 0);
    if (fetches_right_) end_ = layout.offset(1, 4 * column + 4, 0);
  }

  __device__ __forceinline__ Chroma chroma(int row, const HalfRow& samples) const {
    std::uint32_t ends[2] = {};
    if (fetches_left_ || fetches_right_) {
      const std::uint8_t* const blue = samples_ + (end_ + half_row_offset(row));
      ends[0] = blue[0];
      ends[1] = blue[paired_bytes / 2];
    }
    return {quartet(samples.blue, ends[0]), quartet(samples.red, ends[1])};
  }

 private:
  __device__ __forceinline__ Quartet quartet(std::uint32_t samples, std::uint32_t fetched) const {
    std::uint32_t left = __shfl_up_sync(all_lanes, samples, 1) >> 24;
    std::uint32_t right = __shfl_down_sync(all_lanes, samples, 1) & 255U;
    if (is_first_) left = samples & 255U;
    if (is_last_) right = samples >> 24;
    if (fetches_left_) left = fetched;
    if (fetches_right_) right = fetched;
    return make_quartet(samples, left, right);
  }

  bool is_first_ = false;
  bool is_last_ = false;
  bool fetches_left_ = false;
  bool fetches_right_ = false;
  std::uint32_t end_ = 0;  ///< of the second component
};

/// A warp's two rows, from shared memory to the plane.
class RowWriter {
 public:
  __device__ RowWriter(const Stretch& stretch, std::uint32_t lane)
      : bytes_(3 * min(stretch_columns, stretch.columns - stretch.first_column)),
        to_(stretch.to + 3 * stretch.first_column),
        middle_(16 * lane + (lane < 16 ? 512 : stretch.pitch - 256)) {}

  __device__ __forceinline__ void write(const Stretch& stretch, const std::uint8_t* staged, std::uint32_t first_row,
                                        std::uint32_t lane) const {
    if (first_row < stretch.first_row || first_row + 2 > stretch.end_row || bytes_ % 16 != 0) {
      write_part(stretch, staged, first_row, lane);
      return;
    }
    std::uint8_t* const row = to_ + static_cast<std::uint64_t>(first_row) * stretch.pitch;
    const auto copy = [&](std::uint32_t k, std::uint32_t to) {
      *reinterpret_cast<uint4*>(row + to) = *reinterpret_cast<const uint4*>(staged + 512 * k + 16 * lane);
    };
    if (16 * lane < bytes_) copy(0, 16 * lane);
    if ((lane < 16 ? 512 : -256) + 16 * static_cast<int>(lane) < static_cast<int>(bytes_)) copy(1, middle_);
    if (256 + 16 * lane < bytes_) copy(2, stretch.pitch + 256 + 16 * lane);
  }

 private:
  /// At the edges of what is wanted.
  __device__ __forceinline__ void write_part(const Stretch& stretch, const std::uint8_t* staged,
                                             std::uint32_t first_row, std::uint32_t lane) const {
#pragma unroll 1
    for (std::uint32_t at = 16 * lane; at < 2 * row_bytes; at += 512) {
      const std::uint32_t below = at >= row_bytes ? 1 : 0;
      const std::uint32_t in_row = at - below * row_bytes;
      const std::uint32_t y = first_row + below;
      if (y < stretch.first_row || y >= stretch.end_row || in_row >= bytes_) continue;
      std::uint8_t* const to = to_ + static_cast<std::uint64_t>(y) * stretch.pitch + in_row;
      if (in_row + 16 <= bytes_) {
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(staged + at);
      } else {
#pragma unroll 1
        for (std::uint32_t i = 0; i < bytes_ - in_row; ++i) to[i] = staged[at + i];
      }
    }
  }

  std::uint32_t bytes_;   // wanted of a row
  std::uint8_t* to_;      // the stretch's first column in the frame's row 0
  std::uint32_t middle_;  // from the upper row's begin to where the lane's second vector goes
};

/// Where a tile's luminance goes; nowhere: it isn't wanted.
struct LuminanceRows {
  std::uint8_t* to;  // the frame's pixel (0, 0)
  std::uint32_t pitch;

  /// A lane's columns of a row, from `x` on.
  __device__ __forceinline__ void write(const Stretch& stretch, std::uint32_t x, std::uint32_t y,
                                        const Octet& octet) const {
    if (y < stretch.first_row || y >= stretch.end_row || x >= stretch.columns) return;
    std::uint8_t* const at = to + static_cast<std::uint64_t>(y) * pitch + x;
    const std::uint32_t wanted = min(8U, stretch.columns - x);
    if (wanted == 8 && reinterpret_cast<std::uintptr_t>(at) % 8 == 0) {
      *reinterpret_cast<uint2*>(at) = make_uint2(octet.low, octet.high);
    } else {
      for (std::uint32_t b = 0; b < wanted; ++b) {
        at[b] = static_cast<std::uint8_t>((b < 4 ? octet.low : octet.high) >> (8 * (b % 4)));
      }
    }
  }
};

/// An `Interleaver` that converts colours.
template <ColoursBy by>
struct ConvertingWriter {
  const PixelConverter<by>& converter;

  __device__ __forceinline__ void write(const FourSums& sums, std::uint32_t* words, std::uint32_t& luminance) const {
    if constexpr (by == ColoursBy::matrix) {
      luminance = converter.convert_four(sums, words);
    } else {
      Interleaver().write(sums, words, luminance);
      convert(words, luminance);
    }
  }
  __device__ __forceinline__ void convert(std::uint32_t* words, std::uint32_t& luminance) const {
    luminance = converter.convert_four(words);
  }
};

/// What writes pixels of the fast kinds.
template <ColoursBy by>
__device__ __forceinline__ auto writer_for(const PixelConverter<by>& converter) {
  if constexpr (by == ColoursBy::file) {
    return Interleaver();
  } else {
    return ConvertingWriter<by>{converter};
  }
}

template <OctetKind kind, bool with_luminance, ColoursBy by>
__device__ __forceinline__ void convert_stretch(const ComponentLayout& layout, const std::uint8_t* samples,
                                                const Stretch& stretch, const LuminanceRows& luminance,
                                                std::uint8_t* staged, bool inverted,
                                                const PixelConverter<by>& converter) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t column = min(stretch.first_column / 8 + lane, layout.frame_width() / 8 - 1);
  const WarpColumn source(layout, samples, column, kind == OctetKind::h2v2 || kind == OctetKind::h2v1,
                          kind == OctetKind::grey && inverted);
  const RowWriter writer(stretch, lane);
  const auto sink = [&](int i, const std::uint32_t(&words)[12], const Octet(&octets)[2]) {
    const std::uint32_t y = 2 * static_cast<std::uint32_t>(i);
    if constexpr (with_luminance) {
      const std::uint32_t x = stretch.first_column + 8 * lane;
      luminance.write(stretch, x, y, octets[0]);
      luminance.write(stretch, x, y + 1, octets[1]);
      if (stretch.pitch == 0) return;
    }
    __syncwarp();
#pragma unroll
    for (std::uint32_t k = 0; k < 6; ++k) {
      *reinterpret_cast<uint2*>(staged + k / 3 * row_bytes + 24 * lane + 8 * (k % 3)) =
          make_uint2(words[2 * k], words[2 * k + 1]);
    }
    __syncwarp();
    writer.write(stretch, staged, y, lane);
  };
  convert_octets<kind, with_luminance && by == ColoursBy::file>(source, static_cast<int>(stretch.first_row / 2),
                                                                static_cast<int>((stretch.end_row + 1) / 2),
                                                                writer_for(converter), sink);
}

/// Pixel by pixel, at any address.
template <bool with_luminance, ColoursBy by>
__device__ __forceinline__ void convert_plainly(const ComponentLayout& layout, const std::uint8_t* samples,
                                                const Stretch& stretch, const LuminanceRows& luminance,
                                                std::uint32_t first_wanted, bool inverted,
                                                const PixelConverter<by>& converter) {
  const std::uint32_t begin = max(stretch.first_column, first_wanted);
  const std::uint32_t end = min(stretch.first_column + stretch_columns, stretch.columns);
  for (std::uint32_t y = stretch.first_row; y < stretch.end_row; ++y) {
    for (std::uint32_t x = begin + threadIdx.x % 32; x < end; x += 32) {
      Rgb rgb = rgb_at(layout, samples, inverted, x, y);
      if constexpr (by != ColoursBy::file) rgb = converter.of(rgb);
      if constexpr (with_luminance) {
        luminance.to[static_cast<std::uint64_t>(y) * luminance.pitch + x] =
            by == ColoursBy::file ? luminance_at(layout, samples, rgb, x, y)
                                  : slidestream::luminance(rgb.red, rgb.green, rgb.blue);
        if (stretch.pitch == 0) continue;
      }
      std::uint8_t* const to = stretch.to + static_cast<std::uint64_t>(y) * stretch.pitch + 3 * x;
      to[0] = rgb.red;
      to[1] = rgb.green;
      to[2] = rgb.blue;
    }
  }
}

/// Thread blocks of a multiprocessor. Where a lane keeps all rows of an MCU, two are faster than three: 18.9 and 19.7
/// ms per slide to RGB and luminance on an H100.
constexpr int blocks_at_once(OctetKind kind) { return kind == OctetKind::full || kind == OctetKind::full_rgb ? 2 : 3; }

/// How the kernel is laid out: teams of warps take a tile each. Where colours are converted by a matrix, a
/// multiprocessor has one block with all teams, which fills its tables once.
template <OctetKind kind, ColoursBy by>
struct ConvertShape {
  static constexpr int blocks = by == ColoursBy::matrix ? 1 : blocks_at_once(kind);  ///< of a multiprocessor
  /// A third team would leave lanes too few registers.
  static constexpr unsigned teams = by == ColoursBy::matrix ? 2 : 1;
  static constexpr unsigned warps = teams * stretch_warps;
  static constexpr unsigned table_bytes = by == ColoursBy::matrix ? SharedColours::bytes : 0;
  static constexpr unsigned stage_bytes = kind == OctetKind::none ? 0 : 2 * row_bytes;  ///< of a warp
  static constexpr unsigned shared_bytes = table_bytes + warps * stage_bytes;
};

/// A tile, by one team.
template <OctetKind kind, bool with_luminance, ColoursBy by>
__device__ __forceinline__ void convert_tile(const JpegDeviceBatch& batch, std::uint32_t number, std::uint8_t* staged,
                                             const PixelConverter<by>& converter) {
  if (batch.verdicts[number] != 0) return;  // the CPU's
  const JpegDeviceTile tile = batch.tiles[number];
  if (kind_of(tile) != kind) return;
  const JpegCoding& coding = batch.codings[tile.coding];
  const ComponentLayout layout(coding, tile);
  const std::uint8_t* const samples = batch.components + std::uint64_t{64} * tile.first_block;
  LuminanceRows luminance{};
  if constexpr (with_luminance) {
    const JpegDeviceLuminance& beside = batch.luminance[number];
    luminance = {batch.plane + beside.origin, beside.pitch};
  }
  const bool inverted = (tile.flags & JpegDeviceTile::inverted) != 0;
  for_each_stretch(tile, batch.plane + tile.origin, tile.pitch, [&](const Stretch& stretch) {
    if constexpr (kind == OctetKind::none) {
      convert_plainly<with_luminance, by>(layout, samples, stretch, luminance, tile.first_column, inverted, converter);
    } else {
      convert_stretch<kind, with_luminance, by>(layout, samples, stretch, luminance, staged, inverted, converter);
    }
  });
}

/// Tiles of one kind; for others teams have nothing to do.
template <OctetKind kind, bool with_luminance, ColoursBy by>
__global__ void __launch_bounds__(32 * ConvertShape<kind, by>::warps, ConvertShape<kind, by>::blocks)
    convert(const __grid_constant__ JpegDeviceBatch batch) {
  using Shape = ConvertShape<kind, by>;
  unsigned tables = 0;
  if constexpr (by == ColoursBy::matrix) tables = load_tables<32 * Shape::warps>(batch.colours.program->tables);
  const PixelConverter<by> converter(batch.colours, tables);
  std::uint8_t* const staged = block_memory() + Shape::table_bytes + threadIdx.x / 32 * Shape::stage_bytes;
  if constexpr (by == ColoursBy::matrix) {
    for (std::uint32_t i = blockIdx.x * Shape::teams + threadIdx.x / (32 * stretch_warps); i < batch.tile_count;
         i += gridDim.x * Shape::teams) {
      convert_tile<kind, with_luminance, by>(batch, i, staged, converter);
    }
  } else {
    convert_tile<kind, with_luminance, by>(batch, blockIdx.x, staged, converter);
  }
}

}  // namespace
}  // namespace slidestream::cuda
