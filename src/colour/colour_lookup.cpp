#include "colour/colour_lookup.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

namespace slidestream {

GridPlace place_in_grid(float value, int nodes) noexcept {
  // What isn't a number becomes 0.
  const float inside = value > 0.0F ? std::min(value, 1.0F) : 0.0F;
  const std::int64_t scaled = static_cast<std::int64_t>(std::rint(inside * 65535.0F)) * (nodes - 1);
  const std::int64_t place = scaled + (scaled + 0x7fff) / 0xffff;
  return {place >> 16, place & 0xffff};
}

ColourLookup::ColourLookup(const ColourSteps& steps) {
  if (steps.grid.values.empty()) {
    ends = steps.is_matrix_alone();
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t sample = 0; sample < 256; ++sample) {
        const float value = steps.first[c][sample];
        auto& row = added[c][sample];
        row[c] = value;
        if (!ends) continue;
        const auto& factors = std::get<ColourMatrix>(steps.then.front()).factors;
        for (std::size_t to = 0; to < 3; ++to) row[to] = factors[3 * to + c] * value;
      }
    }
    return;
  }
  nodes.reserve(steps.grid.values.size() / 3 * 4);
  for (std::size_t i = 0; i < steps.grid.values.size(); ++i) {
    nodes.push_back(static_cast<std::uint16_t>(steps.grid.values[i]));
    if (i % 3 == 2) nodes.push_back(0);
  }
  // A side has at most 255 nodes, so a step fits in 16 bits.
  std::uint32_t stride = 1;
  for (std::size_t c = 3; c-- > 0;) {
    for (std::size_t sample = 0; sample < 256; ++sample) {
      const GridPlace place = place_in_grid(steps.first[c][sample], steps.grid.nodes[c]);
      SamplePlace& out = places[c][sample];
      out.node = static_cast<std::uint32_t>(place.node) * stride;
      out.rest_and_step = place.rest == 0 ? 0 : static_cast<std::uint32_t>(place.rest) << 16 | stride;
    }
    stride *= static_cast<std::uint32_t>(steps.grid.nodes[c]);
  }
}

}  // namespace slidestream
