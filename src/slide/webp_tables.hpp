/// \file
/// What a tile of WebP says before libtiff and libwebp read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace slidestream {

/// What libwebp takes for tables of codes while it decodes a tile of WebP, besides its picture, in bytes. Nothing of
/// lossy pictures without alpha. A lossless picture, or alpha, says in a picture of its own which blocks share a group
/// of codes; that picture is decoded here. Where it is damaged, as many groups count as its blocks and bits may have.
/// Thread-safe.
std::uint64_t webp_table_bytes(std::span<const std::byte> tile);

/// The width that the picture of a tile of WebP has in its header, 0 where that is cut off. libtiff 4.5 counts rows
/// alone: what a narrower picture leaves of a row it doesn't write. Thread-safe.
std::uint64_t webp_width(std::span<const std::byte> tile);

}  // namespace slidestream
