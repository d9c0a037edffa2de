#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operators/tissue/geojson.hpp"

namespace slidestream::test {

inline constexpr Size ten = {10, 10};

/// The mask that outlines are drawn into, a text per row: # where tissue is. \param scale  of a slide of `ten` pixels
inline std::vector<std::string> drawn(const std::string& text, Size size = ten, GridScale scale = {1.0, 1.0}) {
  const Mask mask = operators::mask_from_geojson(text, "a.geojson", size, scale, ten);
  std::vector<std::string> rows;
  for (std::int64_t y = 0; y < size.height; ++y) {
    rows.emplace_back();
    for (const std::uint8_t pixel : mask.row(y)) rows.back() += pixel != 0 ? '#' : '.';
  }
  return rows;
}

}  // namespace slidestream::test
