#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/tile_encoder.hpp"

/// \file
/// Tiles whose channels are compressed one by one, as Zarr has them.

namespace slidestream {

/// An encoder of tiles whose samples of a channel lie together. What a tile lacks at an image's right and lower edge
/// holds `fill`, the bytes of a sample. The bytes that it gives hold a plane for each channel; `planes_of` finds them.
/// Of one channel they are its plane. \param compression  none, zstd, or blosc_lz4. \param side  of a tile in pixels.
/// \throws Error for what can't be.
std::unique_ptr<TileEncoder> make_planar_encoder(TileCompression compression, PixelFormat format, int side,
                                                 std::vector<std::byte> fill);

/// The most bytes that such an encoder keeps and takes for a tile, with the tile that it gives.
std::uint64_t planar_encoder_bytes(TileCompression compression, PixelFormat format, int side) noexcept;

/// The planes of a tile that such an encoder made.
std::vector<std::span<const std::byte>> planes_of(std::span<const std::byte> tile, int channels);

}  // namespace slidestream
