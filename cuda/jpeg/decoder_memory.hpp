#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/jpeg/jpeg_batch.hpp"

/// \file
/// What a `JpegBatchDecoder` keeps in device memory, in plain C++: so that the memory of a run can be told for a GPU
/// that isn't there.

namespace slidestream::cuda {

/// A part of a tile that one lane decodes: a whole scan, a restart interval, or a piece. Its place is counted in
/// cycles: a cycle is one MCU or two, after which the order of blocks and events repeats (jpeg_geometry.hpp).
struct alignas(16) JpegSegment {
  std::uint32_t tile;
  std::uint32_t start_bit;  ///< in the tile's scan without stuffing
  std::uint32_t end_bit;
  std::uint32_t slack;  ///< the last code ends less than so many bits before `end_bit`
  std::uint32_t first_cycle;
  std::uint32_t cycles;  ///< 0: nothing to do
  std::int32_t dc[3];    ///< predictions at the beginning, in units of the coefficient
  std::uint32_t unused[3];
};

/// What finding the codes' beginnings knows of a piece. States are one word each: see pieces.cu.
struct alignas(16) JpegPiece {
  unsigned long long entry;       ///< that it was decoded from
  unsigned long long checkpoint;  ///< some way on
  unsigned long long exit;        ///< where the first code of the next piece begins
  std::uint32_t blocks;           ///< that begin in it
  std::uint32_t blocks_before;    ///< of these, before the checkpoint
  std::uint32_t first_block;      ///< of the tile, the first that begins in it
  std::uint32_t first_cycle;      ///< and the first cycle
  std::uint32_t cycles;           ///< that begin in it
  std::uint32_t first_position;   ///< where the first of them begins
  std::int32_t before[3];         ///< sums of DC differences by component: before that one
  std::int32_t all[3];            ///< and of all blocks
};

/// Pixels of luminance leave in sectors of 32 bytes. Those that fill only part of a sector are parked in device memory
/// until the lane has the rest. 512 bytes are four rows of events of two blocks, or two of single blocks.
inline constexpr std::uint32_t parked_bytes_per_lane = 512;
/// Of a block of decode.cu. One block runs on a multiprocessor.
inline constexpr std::uint32_t most_warps = 16;

/// The decoder's parts of device memory, as offsets in bytes.
struct JpegDecoderMemory {
  JpegDecoderMemory(const JpegUploadLayout& upload_layout, std::uint32_t multiprocessors) {
    const JpegBatchLimits& limits = upload_layout.limits;
    const auto take = [this](std::size_t bytes) {
      const std::size_t begin = size;
      size += (bytes + 255) / 256 * 256;
      return begin;
    };
    upload = take(upload_layout.size);
    scans = take(limits.compressed_bytes + 32 * std::size_t{limits.tiles} + 16);
    lengths = take(4 * std::size_t{limits.tiles});
    segments = take(sizeof(JpegSegment) * std::size_t{limits.segments});
    pieces = take(sizeof(JpegPiece) * std::size_t{limits.segments});
    counters = take(4 * 3 * std::size_t{limits.codings});
    const bool luminance = limits.format == luminance_format;
    parked = take(luminance ? std::size_t{multiprocessors} * most_warps * 32 * parked_bytes_per_lane : 0);
    components = take(luminance ? 0 : limits.component_bytes);
  }
  std::size_t upload;
  std::size_t scans;
  std::size_t lengths;
  std::size_t segments;
  std::size_t pieces;
  std::size_t counters;    ///< a word for each group of segments, three groups a coding at most: see device_batch.hpp
  std::size_t parked;      ///< for luminance
  std::size_t components;  ///< for RGB
  std::size_t size = 0;
};

}  // namespace slidestream::cuda
