#include "compare/distances.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <slidestream/statistic.hpp>
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

/// NaN stands for nothing.
std::optional<double> difference_of(double first, double second) {
  if (std::isnan(first) != std::isnan(second)) return std::numeric_limits<double>::infinity();
  if (std::isnan(first)) return std::nullopt;
  return second - first;
}

NamedDifference difference_of(const Figure& first, const Figure& second) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  return {first.name, difference_of(first.value.value_or(nothing), second.value.value_or(nothing)), first.is_count};
}

NamedDifference difference_of(const Series& first, const Series& second) {
  NamedDifference found{first.name, std::nullopt, false};
  if (first.is_counts()) {
    const bool some_first = total(first.counts) > 0;
    const bool some_second = total(second.counts) > 0;
    if (some_first != some_second) found.value = std::numeric_limits<double>::infinity();
    if (some_first && some_second) found.value = wasserstein_distance(first.counts, second.counts, first.step);
    return found;
  }
  for (std::size_t i = 0; i < first.values.size(); ++i) {
    const std::optional<double> difference = difference_of(first.values[i], second.values[i]);
    if (difference && (!found.value || std::abs(*difference) > std::abs(*found.value))) found.value = difference;
  }
  return found;
}

}  // namespace

double ValueDifference::difference() const noexcept { return difference_of(first, second).value_or(0.0); }

double StatisticDifference::largest() const noexcept {
  double most = 0.0;
  for (const NamedDifference& part : parts) {
    if (part.value && !part.is_count) most = std::max(most, std::abs(*part.value));
  }
  return most;
}

std::vector<StatisticDifference> statistic_differences(const AnalysisConfig& first_config, const SpectrumSums& first,
                                                       const AnalysisConfig& second_config,
                                                       const SpectrumSums& second) {
  std::vector<StatisticDifference> differences;
  const std::vector<PlacedStatistic> others = placed_statistics(second_config);
  for (const PlacedStatistic& placed : placed_statistics(first_config)) {
    const auto other = std::ranges::find(others, placed.statistic, &PlacedStatistic::statistic);
    if (other == others.end() || other->count != placed.count) continue;
    const Findings a = findings_of(placed, first_config, first);
    const Findings b = findings_of(*other, second_config, second);
    StatisticDifference difference;
    difference.name = placed.statistic->name;
    for (std::size_t i = 0; i < a.figures.size(); ++i) {
      difference.parts.push_back(difference_of(a.figures[i], b.figures[i]));
    }
    for (std::size_t i = 0; i < a.series.size(); ++i) {
      difference.parts.push_back(difference_of(a.series[i], b.series[i]));
    }
    difference.equal = std::ranges::equal(counters_of(placed, first), counters_of(*other, second));
    differences.push_back(std::move(difference));
  }
  return differences;
}

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
  // Unknown ones (NaN) are equal to each other alone.
  const auto percentile = [&](double p) {
    const double a = first.percentile(p, analysis);
    const double b = second.percentile(p, analysis);
    if (std::isnan(a) || std::isnan(b)) {
      return std::isnan(a) && std::isnan(b) ? 0.0 : std::numeric_limits<double>::infinity();
    }
    return b - a;
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
  const auto& [low, high] = analysis.range;
  difference.wasserstein = wasserstein_distance(first.histogram, second.histogram, (high - low) / analysis.bins);
  return difference;
}

}  // namespace slidestream
