#pragma once

#include <cstddef>
#include <span>

#include "slide/tile_job.hpp"

namespace slidestream {

/// Bytes of samples that a tile must have: all rows, or at the slide's lower edge those inside.
std::size_t needed_sample_bytes(const TileJob& job) noexcept;

/// Writes the wanted rectangle of a tile from its interleaved samples, of which there are `needed_sample_bytes`.
void write_interleaved(const TileJob& job, const std::byte* samples);

/// Decodes a tile whose bytes are the samples. \throws TileError when there are fewer bytes than samples.
void decode_uncompressed(const TileJob& job, std::span<const std::byte> bytes);

}  // namespace slidestream
