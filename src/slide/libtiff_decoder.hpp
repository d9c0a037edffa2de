#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "slide/tile_job.hpp"

namespace slidestream {

/// Tiles whose bytes are the samples (no compression), without libtiff.
/// \throws TileError when there are fewer bytes than samples.
void decode_uncompressed(const TileJob& job, std::span<const std::byte> bytes);

/// Tiles in the codecs that libtiff owns (LZW, Deflate, Zstd, WebP, LZMA, LERC, PackBits), decoded by libtiff from
/// bytes that we read.
class LibtiffDecoder {
 public:
  /// \throws TileError with libtiff's reason.
  void decode(const TileJob& job, std::span<const std::byte> bytes);

 private:
  std::unique_ptr<std::byte[]> samples_;  // of one tile; not a vector, which would clear it
  std::size_t capacity_ = 0;
};

}  // namespace slidestream
