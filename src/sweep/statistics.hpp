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

/// Runs after the choice that a comparison takes, at most: an exact test of more takes memory, and they tell all that
/// there is to tell.
inline constexpr int most_confirmations = 25;

/// The chosen combination against the base.
struct TimeComparison {
  TimeSummary winner;
  TimeSummary base;
  double probability = 1.0;  ///< that of `rank_sum_probability`
  bool significant = false;  ///< p < 0.05, and the winner's median is the lower one
};

/// By runs taken after the choice, in the order in which they were; of each the last `most_confirmations` count.
TimeComparison compare_times(const std::vector<double>& winner, const std::vector<double>& base);

}  // namespace slidestream
