#pragma once

#include <cstdint>

/// \file
/// What no tile and no associated image may exceed, whatever its container.

namespace slidestream {

constexpr std::uint64_t most_tile_bytes = std::uint64_t{1} << 30;            ///< when decoded
constexpr std::uint64_t most_jpeg2000_tile_pixels = std::uint64_t{1} << 26;  ///< OpenJPEG holds 4 bytes a sample
constexpr std::uint64_t most_associated_pixels = std::uint64_t{1} << 26;

}  // namespace slidestream
