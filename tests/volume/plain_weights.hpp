#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <slidestream/stitch.hpp>
#include <vector>

#include "volume/fragments.hpp"

namespace slidestream::volume {

/// The definition of the weights of one axis, as docs/volumes.md has it: fragments by sample.
inline std::vector<std::map<std::int64_t, std::uint64_t>> plain_weights(const FragmentAxis& axis,
                                                                        StitchWeights weights) {
  std::vector<std::map<std::int64_t, std::uint64_t>> at(static_cast<std::size_t>(axis.size));
  std::vector<std::int64_t> b;
  std::vector<std::int64_t> e;
  for (std::int64_t i = 0; i < axis.count; ++i) {
    b.push_back(std::max<std::int64_t>(axis.begin(i), 0));
    e.push_back(std::min(axis.begin(i) + axis.fragment, axis.size));
  }
  for (std::int64_t sample = 0; sample < axis.size; ++sample) {
    auto& there = at[static_cast<std::size_t>(sample)];
    for (std::size_t i = 0; i + 1 < b.size(); ++i) {
      std::int64_t p = b[i + 1];
      std::int64_t q = e[i];
      while (i > 0 && 2 * p < b[i + 1] + e[i - 1]) ++p;
      while (i + 2 < b.size() && 2 * q > b[i + 2] + e[i]) --q;
      const auto number = static_cast<std::int64_t>(i);
      if (sample < p && there.empty()) there = {{number, 256}};
      if (sample < p || sample >= q) continue;
      const std::uint64_t ramp = stitch_ramp(weights, q - p)[static_cast<std::size_t>(sample - p)];
      REQUIRE(there.empty());
      there = {{number + 1, ramp}, {number, 256 - ramp}};
    }
    if (there.empty()) there = {{axis.count - 1, 256}};
  }
  return at;
}

}  // namespace slidestream::volume
