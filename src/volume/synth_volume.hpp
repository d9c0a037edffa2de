#pragma once

#include <cstdint>
#include <filesystem>

#include "volume/fragments.hpp"

namespace slidestream::volume {

/// Samples along z, y, x of the volume that is made without a size: a head at 1 mm.
inline constexpr Extent head_size = {172, 220, 156};

/// Writes a head-like volume, for trying and for benchmarks: NIfTI-1, gzip, int16 from 0 to 1,200, 1 mm voxels. Equal
/// arguments give equal bytes. \param size  1 to 4,096 along each axis. \throws ConfigError, OutputError
void write_synthetic_volume(const std::filesystem::path& file, const Extent& size, std::uint64_t seed);

}  // namespace slidestream::volume
