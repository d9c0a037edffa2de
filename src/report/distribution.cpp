#include "report/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace slidestream::report {

namespace {

double total(std::span<const std::uint64_t> histogram) {
  double sum = 0.0;
  for (const std::uint64_t count : histogram) sum += static_cast<double>(count);
  return sum;
}

/// Linear between neighbours, as NumPy does by default. `sorted` isn't empty.
double quantile(const std::vector<double>& sorted, double p) {
  const double place = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace

Axis fitting_axis(std::span<const std::uint64_t> histogram, std::size_t most) {
  std::size_t first = 0;
  std::size_t end = histogram.size();
  while (first < end && histogram[first] == 0) ++first;
  while (end > first && histogram[end - 1] == 0) --end;
  const std::size_t bins_a_step = std::max<std::size_t>(1, (end - first + most - 1) / most);
  return {first, bins_a_step, (end - first + bins_a_step - 1) / bins_a_step};
}

std::vector<double> shares(std::span<const std::uint64_t> histogram, const Axis& axis) {
  std::vector<double> result(axis.steps, 0.0);
  const double all = total(histogram);
  if (all == 0.0) return result;
  for (std::size_t i = axis.first; i < histogram.size(); ++i) {
    const std::size_t step = (i - axis.first) / axis.bins_a_step;
    if (step >= axis.steps) break;
    result[step] += static_cast<double>(histogram[i]) / all;
  }
  return result;
}

double wasserstein_distance(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  const double total_a = total(a);
  const double total_b = total(b);
  if (total_a == 0.0 || total_b == 0.0 || a.size() != b.size()) return 0.0;
  double below_a = 0.0;
  double below_b = 0.0;
  double area = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    below_a += static_cast<double>(a[i]);
    below_b += static_cast<double>(b[i]);
    area += std::abs(below_a / total_a - below_b / total_b);
  }
  return area;
}

double outlier_fence(std::vector<double> distances) {
  constexpr std::size_t fewest = 8;
  if (distances.size() < fewest) return std::numeric_limits<double>::infinity();
  std::ranges::sort(distances);
  const double third = quantile(distances, 0.75);
  return third + 3.0 * (third - quantile(distances, 0.25));
}

}  // namespace slidestream::report
