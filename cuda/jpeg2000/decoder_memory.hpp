#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/jpeg2000/block_bits.hpp"
#include "cuda/jpeg2000/block_decoder.hpp"
#include "cuda/jpeg2000/jpeg2000_batch.hpp"
#include "cuda/jpeg2000/packets.hpp"

/// \file
/// What a `Jpeg2000BatchDecoder` keeps in device memory, in plain C++: so that the memory of a run can be told for a
/// GPU that isn't there.

namespace slidestream::cuda {

/// The decoder's parts of device memory, as offsets in bytes.
struct Jpeg2000DecoderMemory {
  /// So many bytes at the beginning are written once. The rest is the batch's that is under way: between batches others
  /// may use it.
  static constexpr std::size_t kept_bytes = (MqTables::bytes + std::size_t{255}) / 256 * 256;

  explicit Jpeg2000DecoderMemory(const Jpeg2000UploadLayout& upload_layout) {
    const Jpeg2000BatchLimits& limits = upload_layout.limits;
    const auto take = [this](std::size_t bytes) {
      const std::size_t begin = size;
      size += (bytes + 255) / 256 * 256;
      return begin;
    };
    tables = take(MqTables::bytes);
    upload = take(upload_layout.size);
    counters = take(8192);
    state = take(sizeof(std::uint32_t) * limits.state_words);
    blocks = take(sizeof(Jpeg2000Block) * std::size_t{limits.blocks});
    jobs = take(sizeof(BlockJob) * std::size_t{limits.blocks});
    job_blocks = take(sizeof(std::uint32_t) * std::size_t{limits.blocks});
    pieces = take(sizeof(BlockPiece) * std::size_t{limits.pieces});
    // As `stream_words` has it, at most, for all blocks of a wave together.
    stream_words_limit = limits.wave_bytes / 4 + limits.wave_bytes / 32 + 6 * std::size_t{limits.blocks};
    stream = take(sizeof(std::uint32_t) * stream_words_limit);
    planes = take(sizeof(std::uint32_t) * (limits.plane_words + 2 * std::size_t{plane_margin}));
    colour = take(sizeof(float) * colour_floats * limits.colour_tiles);
  }
  std::size_t tables;
  std::size_t upload;
  std::size_t counters;
  std::size_t state;
  std::size_t blocks;
  std::size_t jobs;
  std::size_t job_blocks;
  std::size_t pieces;
  std::size_t stream;
  std::size_t planes;
  std::size_t colour;
  std::size_t stream_words_limit = 0;
  std::size_t size = 0;
};

}  // namespace slidestream::cuda
