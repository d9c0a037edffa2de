#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "image/mask.hpp"

/// \file
/// Connected parts of a mask.

namespace slidestream::operators {

enum class Connectivity {
  four,   ///< pixels touch by their sides
  eight,  ///< by their corners, too
};

/// Pixels side by side in a row.
struct MaskRun {
  std::int64_t y = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t component = 0;
};

struct Component {
  std::int64_t pixels = 0;
  bool at_border = false;  ///< touches the mask's edge
};

/// All pixels of one value.
struct Components {
  std::vector<MaskRun> runs;    ///< row-major
  std::vector<Component> list;  ///< in the order of their first pixels
};

/// Pixels of one value side by side in a row, of all rows.
std::size_t count_runs(const Mask& mask, std::uint8_t value);

/// By union and find over runs: memory and time go with their number.
/// \param value 0 or 1
Components find_components(const Mask& mask, std::uint8_t value, Connectivity connectivity);

/// Gives the pixels of components the other value, where `chosen` says so. By two scans of the mask, so that it takes 8
/// bytes per component, and per part of one that is found to be one later: at most 4 bytes per pixel of the mask.
/// \param value 0 or 1, of the components
void flip_components(Mask& mask, std::uint8_t value, Connectivity connectivity,
                     const std::function<bool(const Component&)>& chosen);

}  // namespace slidestream::operators
