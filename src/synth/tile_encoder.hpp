#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "synth/synth.hpp"

/// \file
/// Compresses tiles as Aperio's scanners do.

namespace slidestream::synth {

using Bytes = std::vector<std::uint8_t>;

/// One object per thread.
class TileEncoder {
 public:
  TileEncoder(SynthCodec codec, int quality, int tile);
  ~TileEncoder();
  TileEncoder(TileEncoder&&) noexcept;
  TileEncoder& operator=(TileEncoder&&) noexcept;

  /// The JPEGTables that all tiles share; empty for other codecs.
  Bytes tables() const;

  /// A tile of interleaved RGB. JPEG tiles are abbreviated: they need `tables()`. \throws Error when the codec fails.
  Bytes encode(std::span<const std::uint8_t> rgb);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Damages a compressed tile so that its decoder must notice: a JPEG's scan ends half-way, a JPEG 2000 codestream is
/// cut.
void corrupt(SynthCodec codec, Bytes& tile);

}  // namespace slidestream::synth
