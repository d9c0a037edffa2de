#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace slidestream::report {

/// How bins of histograms are drawn together for the charts: whole bins a step.
struct Axis {
  std::size_t first = 0;  ///< bin
  std::size_t bins_a_step = 1;
  std::size_t steps = 0;
};

/// The steps, at most `most`, that show all of some histograms' counts without the empty ends.
Axis fitting_axis(std::span<const std::uint64_t> histogram, std::size_t most);

/// The share of all counts that falls into each step.
std::vector<double> shares(std::span<const std::uint64_t> histogram, const Axis& axis);

/// The first Wasserstein distance between two histograms of as many bins, in bins: how far the values of one have to be
/// moved on average to have the other. It is the area between the cumulative distributions. 0 when nothing is counted
/// in one of them.
double wasserstein_distance(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b);

/// Above which a distance is an outlier: the third quartile and three times the distance between the quartiles (Tukey's
/// outer fence). Infinite with fewer than eight distances, of which nothing can be said.
double outlier_fence(std::vector<double> distances);

}  // namespace slidestream::report
