#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/jpeg2000/block_decoder.hpp"
#include "cuda/jpeg2000/jpeg2000_batch.hpp"
#include "cuda/jpeg2000/packets.hpp"

/// \file
/// What the decoder's kernels share: where a batch's parts lie in device memory, and the functions that launch them.

namespace slidestream::cuda {

/// Code-blocks are sorted by length into so many bins.
inline constexpr std::uint32_t length_bins = 1024;

struct Jpeg2000Counters {
  unsigned long long plane_words;   ///< taken
  std::uint32_t stream_words;       ///< taken
  std::uint32_t pieces;             ///< taken
  std::uint32_t jobs;               ///< code-blocks to decode
  std::uint32_t next_job;           ///< that a thread takes next
  std::uint32_t bins[length_bins];  ///< code-blocks in a bin; then, where the bin's next goes
};

struct Jpeg2000DeviceBatch {
  const std::uint8_t* compressed;
  const Jpeg2000Coding* codings;
  const Jpeg2000DeviceTile* tiles;
  const Jpeg2000TilePart* parts;
  const std::uint8_t* tables;  ///< `make_mq_tables`
  std::uint32_t* state;        ///< of packet headers, interleaved over 32 tiles
  Jpeg2000Block* blocks;
  BlockPiece* pieces;
  BlockJob* jobs;             ///< the longest first
  std::uint32_t* job_blocks;  ///< their blocks
  std::uint32_t* stream;      ///< bits of all blocks
  std::uint32_t* planes;      ///< of all blocks: signs, pending and bit planes; `plane_margin` words lie on both sides
  float* colour;              ///< values of components, of tiles that are made of three, or large
  Jpeg2000Counters* counters;
  std::uint8_t* plane;
  std::uint32_t* verdicts;  ///< by tile: a Jpeg2000Reason
  std::uint64_t plane_capacity;
  std::uint32_t stream_capacity;
  std::uint32_t piece_capacity;
  std::uint64_t colour_capacity;  ///< floats
  std::uint32_t state_words;      ///< of a tile
  std::uint32_t large_side;       ///< see Jpeg2000Wave
  std::uint32_t tile_count;
  std::uint32_t block_count;
  const std::uint32_t* every_colour;  ///< `DeviceColours::every`, for tiles whose colours are converted
};

/// The part of a batch that is one wave.
inline Jpeg2000DeviceBatch of_wave(Jpeg2000DeviceBatch batch, const Jpeg2000Wave& wave) {
  batch.tiles += wave.first_tile;
  batch.verdicts += wave.first_tile;
  batch.tile_count = wave.tiles;
  batch.block_count = wave.blocks;
  batch.state_words = wave.state_words;
  batch.large_side = wave.large_side;
  return batch;
}

/// Finds the code-blocks in a wave's packets, sorts them by length and joins their bits.
void launch_packets(const Jpeg2000DeviceBatch& batch, std::uint32_t multiprocessors, cudaStream_t stream);
/// Bits to bit planes, of tiles with code-blocks of style 0 or, `styled`, of any.
void launch_blocks(const Jpeg2000DeviceBatch& batch, bool styled, std::uint32_t multiprocessors, cudaStream_t stream);
/// Bit planes to luminance that is the first component's, of tiles with either transform.
void launch_transform(const Jpeg2000DeviceBatch& batch, bool reversible, cudaStream_t stream);
/// Bit planes to pixels of three components, or to RGB.
void launch_colour(const Jpeg2000DeviceBatch& batch, bool reversible, std::uint32_t multiprocessors,
                   cudaStream_t stream);
/// Bit planes to the pixels of large tiles.
void launch_large(const Jpeg2000DeviceBatch& batch, bool reversible, std::uint32_t multiprocessors,
                  cudaStream_t stream);

}  // namespace slidestream::cuda
