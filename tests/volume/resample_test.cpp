#include "volume/resample.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <slidestream/error.hpp>
#include <vector>

namespace slidestream::volume {
namespace {

std::vector<float> seen(const Resampling& resampling, const Extent& scan, const Extent& fragment) {
  std::vector<float> samples(static_cast<std::size_t>(count_of(scan)));
  std::iota(samples.begin(), samples.end(), 0.0F);
  std::vector<float> made(static_cast<std::size_t>(count_of(fragment)));
  resampling.cut(made, samples, FragmentGrid(resampling.grid(), fragment, {1, 1, 1}), 0, -1.0F);
  return made;
}

/// For each sample of the scan along x.
std::vector<std::int64_t> nearest_along_x(const Resampling& resampling, std::int64_t samples) {
  std::vector<std::int64_t> nearest;
  for (std::int64_t i = 0; i < samples; ++i) nearest.push_back(resampling.nearest(2, i));
  return nearest;
}

TEST_CASE("a grid of the same spacing has the same samples") {
  const Resampling resampling({2, 3, 4}, {0.7, 1.1, 0.3}, {0.7, 1.1, 0.3});
  CHECK(resampling.grid() == Extent{2, 3, 4});
  std::vector<float> samples(24);
  std::iota(samples.begin(), samples.end(), 0.0F);
  CHECK(seen(resampling, {2, 3, 4}, {2, 3, 4}) == samples);
  CHECK(nearest_along_x(resampling, 4) == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("finer samples lie between those of the scan, and behind its last they are as it") {
  const Resampling resampling({1, 1, 4}, {1, 1, 1.5}, {1, 1, 0.5});
  CHECK(resampling.grid() == Extent{1, 1, 10});
  const std::vector<float> made = seen(resampling, {1, 1, 4}, {1, 1, 12});
  CHECK(made.front() == -1.0F);
  CHECK(made.back() == -1.0F);
  for (std::size_t i = 0; i < 10; ++i) CHECK(made[i + 1] == doctest::Approx(static_cast<double>(i) / 3.0));
  CHECK(nearest_along_x(resampling, 4) == std::vector<std::int64_t>{0, 3, 6, 9});
  // 4 samples of 1 mm end at 3 mm; one more at 3.2 mm is as the last.
  const Resampling behind({1, 1, 4}, {1, 1, 1}, {1, 1, 0.8});
  CHECK(behind.grid()[2] == 5);
  CHECK(seen(behind, {1, 1, 4}, {1, 1, 5}).back() == 3.0F);
}

TEST_CASE("a sample that isn't finite counts only where it has a weight") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const Extent scan{3, 3, 3};
  const Resampling same(scan, {1, 1, 1}, {1, 1, 1});
  const Resampling finer(scan, {1, 1, 1}, {0.5, 0.5, 0.5});
  const auto cut = [&](const Resampling& resampling, const std::vector<float>& samples) {
    std::vector<float> made(static_cast<std::size_t>(count_of(resampling.grid())));
    resampling.cut(made, samples, FragmentGrid(resampling.grid(), resampling.grid(), {1, 1, 1}), 0, 0.0F);
    return made;
  };
  const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  std::vector<float> finite(27);
  std::iota(finite.begin(), finite.end(), -13.0F);
  const std::vector<float> finer_finite = cut(finer, finite);
  for (std::size_t place = 0; place < finite.size(); ++place) {
    for (const double odd : {nan, infinity, -infinity}) {
      std::vector<float> samples = finite;
      samples[place] = static_cast<float>(odd);
      const std::vector<float> made = cut(same, samples);
      for (std::size_t i = 0; i < made.size(); ++i) CHECK(bits(made[i]) == bits(samples[i]));
      // Of the finer grid those nearer than one sample of the scan along each axis.
      const std::vector<float> fine = cut(finer, samples);
      for (std::size_t i = 0; i < fine.size(); ++i) {
        const auto is_near = [&](std::size_t fine_at, std::size_t at) {
          return fine_at < 2 * at + 2 && fine_at + 2 > 2 * at;
        };
        const bool counts =
            is_near(i / 25, place / 9) && is_near(i / 5 % 5, place / 3 % 3) && is_near(i % 5, place % 3);
        CHECK(std::isfinite(fine[i]) == !counts);
        if (!counts) CHECK(bits(fine[i]) == bits(finer_finite[i]));
      }
    }
  }
  // Zeros have the sign of the sum.
  CHECK(bits(cut(same, std::vector<float>(27, -0.0F)).front()) == bits(-0.0F));
  std::vector<float> zeros(27, 1.0F);
  zeros[0] = -0.0F;
  CHECK(bits(cut(same, zeros).front()) == bits(0.0F));
}

TEST_CASE("of two samples that are equally near the lower one is taken") {
  const Resampling resampling({1, 1, 7}, {1, 1, 1}, {1, 1, 2});
  CHECK(resampling.grid()[2] == 4);
  CHECK(nearest_along_x(resampling, 7) == std::vector<std::int64_t>{0, 0, 1, 1, 2, 2, 3});
}

TEST_CASE("lengths that are none, and too many samples, are refused") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH_AS(Resampling({2, 2, 2}, {1, nan, 1}, {1, 1, 1}), doctest::Contains("along y"), Error);
  CHECK_THROWS_WITH_AS(Resampling({2, 2, 2}, {0, 1, 1}, {1, 1, 1}), doctest::Contains("along z"), Error);
  CHECK_THROWS_WITH_AS(Resampling({2, 2, 200}, {1, 1, 1e300}, {1, 1, 0.001}), doctest::Contains("more than 32,768"),
                       Error);
}

TEST_CASE("samples of the scan take neither memory nor time before they are used") {
  constexpr std::int64_t samples = std::int64_t{1} << 40;
  const Resampling resampling({1, 1, samples}, {1, 1, 1e-9}, {1, 1, 1});
  CHECK(resampling.grid() == Extent{1, 1, 1101});
  CHECK(resampling.nearest(2, samples - 1) == 1100);
}

}  // namespace
}  // namespace slidestream::volume
