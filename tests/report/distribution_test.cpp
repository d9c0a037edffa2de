#include "report/distribution.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

using namespace slidestream::report;

TEST_CASE("an axis shows all counts in whole bins, without the empty ends") {
  std::vector<std::uint64_t> histogram(1500, 0);
  histogram[100] = 3;
  histogram[899] = 1;
  const Axis axis = fitting_axis(histogram, 160);
  CHECK(axis.first == 100);
  CHECK(axis.bins_a_step == 5);
  CHECK(axis.steps == 160);
  const std::vector<double> found = shares(histogram, axis);
  CHECK(found.front() == 0.75);
  CHECK(found.back() == 0.25);
  CHECK(std::accumulate(found.begin(), found.end(), 0.0) == doctest::Approx(1.0));
}

TEST_CASE("nothing counted gives no steps, and one bin gives one") {
  std::vector<std::uint64_t> histogram(10, 0);
  CHECK(fitting_axis(histogram, 160).steps == 0);
  CHECK(shares(histogram, fitting_axis(histogram, 160)).empty());
  CHECK(fitting_axis({}, 160).steps == 0);
  histogram[9] = 5;
  CHECK(fitting_axis(histogram, 160).steps == 1);
  CHECK(shares(histogram, fitting_axis(histogram, 160)) == std::vector<double>{1.0});
}

TEST_CASE("the distance is how far values have to be moved on average") {
  const std::vector<std::uint64_t> here = {4, 0, 0, 0};
  const std::vector<std::uint64_t> there = {0, 0, 0, 7};
  const std::vector<std::uint64_t> both = {1, 0, 0, 1};
  const std::vector<std::uint64_t> none = {0, 0, 0, 0};
  CHECK(wasserstein_distance(here, here) == 0.0);
  CHECK(wasserstein_distance(here, there) == doctest::Approx(3.0));
  CHECK(wasserstein_distance(there, here) == doctest::Approx(3.0));
  CHECK(wasserstein_distance(here, both) == doctest::Approx(1.5));
  CHECK(wasserstein_distance(here, none) == 0.0);
}

TEST_CASE("an outlier lies beyond Tukey's outer fence, and of few slides nothing is said") {
  CHECK(std::isinf(outlier_fence({1, 2, 3, 4, 5, 6, 100})));
  // Quartiles 2 and 4 of 0 to 6, with numbers in between.
  CHECK(outlier_fence({8, 7, 6, 5, 4, 3, 2, 1, 0}) == doctest::Approx(6 + 3 * 4));
}
