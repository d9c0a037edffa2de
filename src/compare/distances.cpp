#include "compare/distances.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace slidestream {

namespace {

double total(const std::vector<std::uint64_t>& counts) {
  return static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
}

/// Calls `visit` with the difference of the shares of each bin.
template <class Visit>
void for_each_share(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second, Visit visit) {
  if (first.size() != second.size()) throw std::invalid_argument("histograms with different numbers of bins");
  const double all_first = total(first);
  const double all_second = total(second);
  if (all_first <= 0 || all_second <= 0) throw std::invalid_argument("an empty histogram");
  for (std::size_t i = 0; i < first.size(); ++i) {
    visit(static_cast<double>(second[i]) / all_second - static_cast<double>(first[i]) / all_first);
  }
}

}  // namespace

double Difference::largest() const noexcept {
  return std::max(
      {std::abs(mean), std::abs(standard_deviation), std::abs(p05), std::abs(p50), std::abs(p95), wasserstein});
}

double l1_distance(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second) {
  double sum = 0.0;
  for_each_share(first, second, [&sum](double share) { sum += std::abs(share); });
  return sum;
}

double wasserstein_distance(const std::vector<std::uint64_t>& first, const std::vector<std::uint64_t>& second,
                            double bin_width) {
  double cumulated = 0.0;
  double sum = 0.0;
  for_each_share(first, second, [&](double share) {
    cumulated += share;
    sum += std::abs(cumulated);
  });
  return sum * bin_width;
}

Difference difference_of(const SpectrumSums& first, const SpectrumSums& second, const AnalysisConfig& analysis) {
  const auto& [low, high] = analysis.range;
  const auto percentile = [&, l = low, h = high](double p) {
    return second.percentile(p, l, h) - first.percentile(p, l, h);
  };
  Difference difference;
  difference.mean = second.mean() - first.mean();
  difference.standard_deviation = second.standard_deviation() - first.standard_deviation();
  difference.p05 = percentile(0.05);
  difference.p50 = percentile(0.5);
  difference.p95 = percentile(0.95);
  difference.equal = first.histogram == second.histogram && first.windows == second.windows &&
                     first.values == second.values && first.clipped == second.clipped && first.sum == second.sum &&
                     first.sum_of_squares == second.sum_of_squares;
  if (difference.equal) return difference;
  difference.l1 = l1_distance(first.histogram, second.histogram);
  difference.wasserstein = wasserstein_distance(first.histogram, second.histogram, (high - low) / analysis.bins);
  return difference;
}

}  // namespace slidestream
