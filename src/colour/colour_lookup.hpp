#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "colour/colour_steps.hpp"

namespace slidestream {

/// Where a sample of a channel lies in a grid.
struct SamplePlace {
  std::uint32_t node = 0;  ///< what it adds to the number of the pixel's lowest corner
  /// How far it is to the next node, in 65,536ths, as the upper 16 bits. The lower ones: what is added to the number of
  /// a node to get there, 0 where nothing is left.
  std::uint32_t rest_and_step = 0;
};

/// The steps of a profile as what is looked up per pixel. Immutable, so thread-safe.
struct ColourLookup {
  explicit ColourLookup(const ColourSteps& steps);

  /// Where there is no grid: of each channel's samples, what they add to the three values; a fourth one is 0. That is
  /// light already where `ends` holds.
  alignas(16) std::array<std::array<std::array<float, 4>, 256>, 3> added{};
  bool ends = false;                                     ///< the profile is curves and a matrix alone
  std::array<std::array<SamplePlace, 256>, 3> places{};  ///< of each channel's samples, where there is a grid
  std::vector<std::uint16_t> nodes;                      ///< a grid's values, and a fourth one of 0 per node

  /// Memory of its tables, in bytes, besides the object itself.
  std::uint64_t table_bytes() const noexcept { return nodes.capacity() * sizeof(nodes.front()); }
};

/// The node below a value along a channel of a grid, and how far it is to the next, in 65,536ths.
struct GridPlace {
  std::int64_t node;
  std::int64_t rest;
};

/// As Little CMS has it: from 16 bits, and at the end the last node itself.
GridPlace place_in_grid(float value, int nodes) noexcept;

}  // namespace slidestream
