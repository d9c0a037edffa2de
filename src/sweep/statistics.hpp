#pragma once

#include <cstddef>
#include <vector>

namespace slidestream {

/// Times of one combination.
struct TimeSummary {
  std::size_t runs = 0;
  double least = 0.0;
  double median = 0.0;
  double most = 0.0;

  double spread() const noexcept { return most - least; }
};

TimeSummary summarise(std::vector<double> seconds);

/// Whether more runs are a waste: with at least two runs each, its fastest is slower than the best's median by more
/// than the larger of both spreads.
bool cannot_win(const TimeSummary& times, const TimeSummary& best) noexcept;

/// Probability that times as much on the shorter side as `a`'s come about when `a` and `b` don't differ: Wilcoxon's
/// rank sum (Mann and Whitney's U), one-sided, exact, equal times counting half. 1 when either is empty.
double rank_sum_probability(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace slidestream
