#include "sweep/statistics.hpp"

#include <algorithm>

namespace slidestream {

namespace {

constexpr double significant_below = 0.05;

/// Earlier starts may have added to them.
std::vector<double> latest(const std::vector<double>& seconds) {
  const std::size_t kept = std::min<std::size_t>(seconds.size(), most_confirmations);
  return {seconds.end() - static_cast<std::ptrdiff_t>(kept), seconds.end()};
}

}  // namespace

TimeSummary summarise(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::ranges::sort(seconds);
  const std::size_t middle = seconds.size() / 2;
  const double median = seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
  return {seconds.size(), seconds.front(), median, seconds.back()};
}

bool cannot_win(const TimeSummary& times, const TimeSummary& best) noexcept {
  if (times.runs < 2 || best.runs < 2) return false;
  return times.least > best.median + std::max(times.spread(), best.spread());
}

double rank_sum_probability(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.empty() || b.empty()) return 1.0;
  // Ranks times two, so that ties have whole numbers: 1 + 2 x smaller ones + equal ones.
  std::vector<double> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::vector<std::size_t> ranks;
  std::size_t total = 0;
  for (const double time : all) {
    std::size_t rank = 1;
    for (const double other : all) rank += other < time ? 2 : other == time ? 1 : 0;
    ranks.push_back(rank);
    total += rank;
  }
  std::size_t sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += ranks[i];
  // ways[k][s]: choices of k of the times whose ranks add up to s.
  std::vector<std::vector<double>> ways(a.size() + 1, std::vector<double>(total + 1, 0.0));
  ways[0][0] = 1.0;
  for (const std::size_t rank : ranks) {
    for (std::size_t k = a.size(); k > 0; --k) {
      for (std::size_t s = total; s >= rank; --s) ways[k][s] += ways[k - 1][s - rank];
    }
  }
  double as_low = 0.0;
  double every = 0.0;
  for (std::size_t s = 0; s <= total; ++s) {
    every += ways[a.size()][s];
    if (s <= sum) as_low += ways[a.size()][s];
  }
  return as_low / every;
}

TimeComparison compare_times(const std::vector<double>& winner, const std::vector<double>& base) {
  const std::vector<double> fast = latest(winner);
  const std::vector<double> slow = latest(base);
  TimeComparison found{.winner = summarise(fast), .base = summarise(slow)};
  found.probability = rank_sum_probability(fast, slow);
  found.significant = found.probability < significant_below && found.winner.median < found.base.median;
  return found;
}

}  // namespace slidestream
