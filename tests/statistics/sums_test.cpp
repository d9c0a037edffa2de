#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

using slidestream::SpectrumSums;

namespace {

SpectrumSums with_histogram(std::vector<std::uint64_t> histogram) {
  SpectrumSums sums;
  sums.histogram = std::move(histogram);
  return sums;
}

}  // namespace

TEST_CASE("windows and sums add to the same bits in any order") {
  std::mt19937_64 random(7);
  std::vector<std::pair<double, double>> windows;
  for (int i = 0; i < 300; ++i) {
    const double value = static_cast<double>(random() >> 11) * 0x1p-30;
    windows.emplace_back(value, value * value * 1e-3);
  }
  SpectrumSums forward = with_histogram({0});
  for (const auto& [value, square] : windows) forward.add_window(value, square, 64);

  for (int round = 0; round < 5; ++round) {
    std::shuffle(windows.begin(), windows.end(), random);
    std::vector<SpectrumSums> parts(4, with_histogram({0}));
    for (const auto& [value, square] : windows) parts[random() % parts.size()].add_window(value, square, 64);
    std::shuffle(parts.begin(), parts.end(), random);
    SpectrumSums total = with_histogram({0});
    for (const SpectrumSums& part : parts) total += part;
    CHECK(total.sum == forward.sum);
    CHECK(total.sum_of_squares == forward.sum_of_squares);
    CHECK(total.values == forward.values);
    CHECK(total.windows == 300);
  }
}

TEST_CASE("mean and standard deviation are those of the values") {
  SpectrumSums sums;
  sums.add_window(1.0 + 2.0, 1.0 + 4.0, 2);
  sums.add_window(3.0 + 6.0, 9.0 + 36.0, 2);
  CHECK(sums.mean() == doctest::Approx(3.0));
  CHECK(sums.standard_deviation() == doctest::Approx(std::sqrt(12.5 - 9.0)));
  CHECK(SpectrumSums().mean() == 0.0);
  CHECK(SpectrumSums().standard_deviation() == 0.0);
}

TEST_CASE("sums of the largest linear spectra don't overflow") {
  // One 4096 x 4096 window of white: |F(0,0)| is its only value; a slide has fewer than 2^34 windows.
  const double peak = 255.0 * 4096.0 * 4096.0;
  SpectrumSums sums;
  sums.add_window(peak, peak * peak, 4096ULL * 4096ULL);
  CHECK(static_cast<double>(sums.sum) == std::ldexp(peak, SpectrumSums::sum_fraction_bits));
  for (int doubling = 0; doubling < 34; ++doubling) sums += SpectrumSums(sums);
  CHECK(sums.sum > 0);
  CHECK(sums.sum_of_squares > 0);
  CHECK(sums.mean() == doctest::Approx(255.0));
}

TEST_CASE("histograms add bin by bin, and only when they are alike") {
  SpectrumSums sums = with_histogram({1, 2, 3});
  sums += with_histogram({10, 20, 30});
  CHECK(sums.histogram == std::vector<std::uint64_t>{11, 22, 33});
  CHECK_THROWS_AS(sums += with_histogram({1}), std::invalid_argument);
}

TEST_CASE("a percentile among clipped values isn't known") {
  SpectrumSums sums = with_histogram({4, 2, 2, 2});
  sums.clipped = 1;
  CHECK(std::isnan(sums.percentile(0.1, 0.0, 4.0)));
  CHECK(sums.percentile(0.5, 0.0, 4.0) == doctest::Approx(1.5));
  CHECK(std::isnan(sums.percentile(0.95, 0.0, 4.0)));
  sums.clipped = 0;
  CHECK(sums.percentile(0.95, 0.0, 4.0) == doctest::Approx(3.75));
}

TEST_CASE("nothing is clipped below the smallest possible value") {
  SpectrumSums sums = with_histogram({4, 2, 2, 2});
  sums.clipped = 1;
  slidestream::AnalysisConfig analysis;
  const auto known = [&](slidestream::ValueKind value, double low) {
    analysis.value = value;
    analysis.range = {low, low + 4.0};
    CHECK(std::isnan(sums.percentile(0.95, analysis)));
    const double lowest = sums.percentile(0.1, analysis);
    if (!std::isnan(lowest)) CHECK(lowest == doctest::Approx(low + 0.25));
    return !std::isnan(lowest);
  };
  CHECK(known(slidestream::ValueKind::log1p_db, 0.0));
  CHECK(known(slidestream::ValueKind::log1p_db, -1.0));
  CHECK(known(slidestream::ValueKind::linear, 0.0));
  CHECK(known(slidestream::ValueKind::db, -120.0));
  CHECK_FALSE(known(slidestream::ValueKind::log1p_db, 0.1));
  CHECK_FALSE(known(slidestream::ValueKind::linear, 0.1));
  CHECK_FALSE(known(slidestream::ValueKind::db, -119.9));
}

TEST_CASE("percentiles are linear within the bin") {
  const SpectrumSums even = with_histogram({10, 10, 10, 10});
  CHECK(even.percentile(0.0, 0.0, 8.0) == doctest::Approx(0.0));
  CHECK(even.percentile(0.25, 0.0, 8.0) == doctest::Approx(2.0));
  CHECK(even.percentile(0.5, 0.0, 8.0) == doctest::Approx(4.0));
  CHECK(even.percentile(0.9, 0.0, 8.0) == doctest::Approx(7.2));
  CHECK(even.percentile(1.0, 0.0, 8.0) == doctest::Approx(8.0));

  const SpectrumSums gaps = with_histogram({0, 4, 0, 0, 4, 0});
  CHECK(gaps.percentile(0.0, -6.0, 6.0) == doctest::Approx(-4.0));
  CHECK(gaps.percentile(0.25, -6.0, 6.0) == doctest::Approx(-3.0));
  CHECK(gaps.percentile(0.5, -6.0, 6.0) == doctest::Approx(-2.0));
  CHECK(gaps.percentile(0.75, -6.0, 6.0) == doctest::Approx(3.0));
  CHECK(gaps.percentile(1.0, -6.0, 6.0) == doctest::Approx(4.0));
  CHECK(with_histogram({0, 0}).percentile(0.5, 3.0, 4.0) == 3.0);
}
