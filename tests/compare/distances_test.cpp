#include "compare/distances.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

using namespace slidestream;

namespace {

using Counts = std::vector<std::uint64_t>;

/// As the definition says: values are moved one by one, both in order.
double moved(const std::vector<double>& first, const std::vector<double>& second) {
  double sum = 0.0;
  for (std::size_t i = 0; i < first.size(); ++i) sum += std::abs(first[i] - second[i]);
  return sum / static_cast<double>(first.size());
}

}  // namespace

TEST_CASE("distances of small histograms by hand") {
  CHECK(l1_distance({1, 0}, {0, 5}) == doctest::Approx(2));
  CHECK(l1_distance({1, 1}, {3, 1}) == doctest::Approx(0.5));
  CHECK(l1_distance({2, 4}, {1, 2}) == 0);
  CHECK(wasserstein_distance({1, 0, 0}, {0, 0, 1}, 0.5) == doctest::Approx(1));
  CHECK(wasserstein_distance({1, 1, 0}, {0, 1, 1}, 0.1) == doctest::Approx(0.1));
  CHECK_THROWS_AS(l1_distance({1, 2}, {1}), std::invalid_argument);
  CHECK_THROWS_AS(wasserstein_distance({0, 0}, {1, 0}, 1), std::invalid_argument);
}

TEST_CASE("the Wasserstein distance is what moving values in order takes") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    constexpr std::size_t bins = 40;
    constexpr int values = 100;
    std::vector<double> sorted[2];
    Counts counts[2] = {Counts(bins), Counts(bins)};
    for (int which = 0; which < 2; ++which) {
      for (int i = 0; i < values; ++i) ++counts[which][random() % bins];
      for (std::size_t bin = 0; bin < bins; ++bin) {
        sorted[which].insert(sorted[which].end(), counts[which][bin], 0.25 * static_cast<double>(bin));
      }
    }
    CHECK(wasserstein_distance(counts[0], counts[1], 0.25) == doctest::Approx(moved(sorted[0], sorted[1])));
    CHECK(wasserstein_distance(counts[0], counts[0], 0.25) == 0);
  }
}

TEST_CASE("a difference has a sign and names equality to the bit") {
  AnalysisConfig analysis;
  analysis.bins = 4;
  analysis.range = {0.0, 4.0};
  SpectrumSums first;
  first.histogram = {4, 0, 0, 0};
  first.add_window(2.0, 1.0, 4);
  SpectrumSums second;
  second.histogram = {0, 4, 0, 0};
  second.add_window(6.0, 9.0, 4);
  const Difference difference = difference_of(first, second, analysis);
  CHECK_FALSE(difference.equal);
  CHECK(difference.mean == doctest::Approx(1));
  CHECK(difference.p50 == doctest::Approx(1));
  CHECK(difference.l1 == doctest::Approx(2));
  CHECK(difference.wasserstein == doctest::Approx(1));
  CHECK(difference.largest() == doctest::Approx(1));
  CHECK(difference_of(second, first, analysis).mean == doctest::Approx(-1));
  CHECK(difference_of(first, first, analysis).equal);
  // As many windows with the same histogram, but other sums.
  SpectrumSums other = first;
  ++other.sum;
  CHECK_FALSE(difference_of(first, other, analysis).equal);
}

TEST_CASE("a figure that only one slide has differs without bound") {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  CHECK(ValueDifference{"tissue.share", 0.25, 0.75}.difference() == 0.5);
  CHECK(ValueDifference{"tissue.share", nothing, nothing}.difference() == 0.0);
  CHECK(std::isinf(ValueDifference{"tissue.share", nothing, 0.75}.difference()));
}
