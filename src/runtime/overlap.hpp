#pragma once

#include <cstdint>
#include <vector>

#include <slidestream/trace.hpp>

/// \file
/// Sets of moments, for the figures of overlap: pure functions.

namespace slidestream::runtime {

/// The moments from `start` up to `end`; none when that isn't later.
struct Interval {
  std::int64_t start = 0;
  std::int64_t end = 0;

  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Disjoint intervals in order of time, none empty and none touching the next.
using IntervalSet = std::vector<Interval>;

/// The moments that lie in any of them.
IntervalSet united(std::vector<Interval> intervals);

/// How long a set is.
std::int64_t measure(const IntervalSet& set);

/// How long two sets are together.
std::int64_t common_measure(const IntervalSet& a, const IntervalSet& b);

/// The longest interval between two neighbours of the set, the first of equals; empty when there are no two.
Interval longest_gap(const IntervalSet& set);

}  // namespace slidestream::runtime
