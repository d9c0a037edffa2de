#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/colour/colour_program.hpp"
#include "cuda/jpeg/decoder_memory.hpp"
#include "cuda/jpeg/jpeg_batch.hpp"

/// \file
/// What the decoder's kernels share: where a batch's parts lie in device memory, and the functions that launch them.

namespace slidestream::cuda {

struct JpegDeviceBatch {
  const std::uint8_t* compressed;
  const JpegCoding* codings;
  const JpegDeviceTile* tiles;
  const JpegDeviceGroup* groups;
  const JpegDeviceRectangle* rectangles;
  const std::uint32_t* queue;
  uint4* scans;            ///< without stuffing, big-endian words
  std::uint32_t* lengths;  ///< of those, bytes, by tile
  JpegSegment* segments;
  JpegPiece* pieces;
  std::uint32_t* counters;   ///< one a group: segments taken beyond those given out at the beginning
  std::uint8_t* parked;      ///< half sectors of pixels, by lane
  std::uint8_t* components;  ///< blocks of samples, for RGB: see component_layout.hpp
  std::uint8_t* plane;
  std::uint32_t* verdicts;  ///< by tile: a JpegReason
  std::uint32_t tile_count;
  std::uint32_t segment_count;
  std::uint32_t rectangle_count;
  std::uint32_t group_count;
  const JpegDeviceLuminance* luminance;  ///< by tile, where it is wanted beside RGB; else null
  DeviceColours colours;                 ///< what RGB is converted by; luminance is that of converted RGB then
};

/// How the fused kernel is laid out on the device.
struct JpegLaneShape {
  std::uint32_t blocks;     ///< of threads
  std::uint32_t warps;      ///< of a block
  std::uint32_t lanes;      ///< of a warp that decode, at most 32
  std::uint32_t threshold;  ///< waiting lanes that the inverse transform starts for
};

/// What a device has room for.
struct JpegDeviceLimits {
  std::uint32_t multiprocessors;
  std::uint32_t shared_bytes;  ///< of a block
};

/// `cut`: some of the batch's tiles are cut into pieces.
JpegLaneShape shape_for(const JpegDeviceLimits& limits, LaneMode mode, const JpegBatch::Mode& work, bool cut);

void launch_unstuff(const JpegDeviceBatch& batch, cudaStream_t stream);
void launch_white(const JpegDeviceBatch& batch, cudaStream_t stream);
/// `most_pieces` of a tile, and `lookup_words` of a coding, at most.
void launch_find_pieces(const JpegDeviceBatch& batch, const JpegDeviceLimits& limits, std::uint32_t most_pieces,
                        std::uint32_t lookup_words, cudaStream_t stream);
/// Components to RGB, and to luminance where that is wanted beside it. `kinds` of the batch's tiles
/// (`JpegBatch::octet_kinds`), and `most_stretches` of one.
void launch_convert(const JpegDeviceBatch& batch, std::uint32_t kinds, std::uint32_t most_stretches,
                    std::uint32_t multiprocessors, cudaStream_t stream);
void launch_decode(const JpegDeviceBatch& batch, LaneMode mode, const JpegBatch::Mode& work, const JpegLaneShape& shape,
                   cudaStream_t stream);

}  // namespace slidestream::cuda
