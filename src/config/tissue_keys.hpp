#pragma once

#include <cstdint>
#include <vector>

#include "config/keys.hpp"

namespace slidestream {

/// Those of `[tissue]`.
std::vector<ConfigKey> tissue_keys();

/// Larger files of outlines (`tissue.source = "geojson"`) are not read.
inline constexpr std::uintmax_t max_geojson_bytes = std::uintmax_t{1} << 28;

}  // namespace slidestream
