/// \file
/// Memory for the tables of codes that libwebp builds for a tile.
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

}  // namespace slidestream
