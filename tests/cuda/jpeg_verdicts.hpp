#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "cuda/jpeg_tiles.hpp"

/// \file
/// Whether the GPU's way and the CPU's come to the same verdict, over tiles of every kind. The GPU's way may leave a
/// tile to the CPU. What it vouches for the CPU must accept, with the same pixels; and tiles as slides have them it
/// must vouch for.

namespace slidestream::test {

/// Decodes tiles of a level with these JPEGTables, as a GPU does, to the format that is checked.
using GpuWay = std::function<std::vector<DeviceResult>(const std::vector<DeviceTile>&, const Bytes& tables)>;
inline constexpr std::size_t most_tiles_at_once = 4096;

/// Photometric tag x number and identifiers of components x Adobe marker x sampling x tables x process: each `step`-th.
void check_combinations(const GpuWay& decode, const PixelFormat& format, std::size_t step);

/// All that may say what three components are: photometric tag x identifiers x markers x sampling x quantisation
/// tables. The pixels must be those of the colour that the test expects.
void check_colours(const GpuWay& decode, const PixelFormat& format);

/// Frames larger and smaller than the tile, inside the image and at its edge, wanted in whole and in part.
void check_sizes(const GpuWay& decode, const PixelFormat& format);

/// Headers, and JPEGTables, with a few bytes or segments changed.
void check_header_mutants(const GpuWay& decode, const PixelFormat& format, std::size_t count);

}  // namespace slidestream::test
