#include "operators/gaussian/gaussian.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "random_rectangles.hpp"
#include "support/plain_operators.hpp"

using namespace slidestream;
using namespace slidestream::test;
using operators::Gaussian;
using operators::gaussian_weights;

namespace {

void check(int radius, double sigma, PixelFormat format) {
  INFO("radius " << radius << ", sigma " << sigma);
  Gaussian gaussian(radius, sigma);
  check_rectangles(
      format, format, gaussian.border(), [&](const HostView& out, const ConstHostView& in) { gaussian.run(out, in); },
      [&](const PixelImage& image) { return plain_gaussian(image, radius, sigma); });
}

}  // namespace

TEST_CASE("The Gaussian of luminance is the definition, whole and in rectangles") {
  check(3, 1.4, luminance_format);
  check(2, 0.8, luminance_format);
}

TEST_CASE("The Gaussian of RGB is the definition, whole and in rectangles") {
  check(3, 1.4, rgb_format);
  check(1, 10.0, rgb_format);
}

TEST_CASE("Narrow and wide Gaussians are the definition") {
  std::mt19937_64 random(8);
  const PixelImage image = random_image(random, {70, 23}, rgb_format);
  for (const double sigma : {0.01, 0.2, 0.4, 1.0, 5.0, 1000.0}) {
    for (const int radius : {0, 1, 2, 3, 4, 7, 8, 15, 16}) {
      INFO("radius " << radius << ", sigma " << sigma);
      PixelImage made(image.image, image.format);
      Gaussian(radius, sigma).run(made.view(), image.view());
      CHECK(made.bytes == plain_gaussian(image, radius, sigma).bytes);
    }
  }
}

TEST_CASE("Images wider than a block are smoothed without a seam") {
  std::mt19937_64 random(9);
  const PixelImage image = random_image(random, {7000, 3}, luminance_format);
  PixelImage made(image.image, image.format);
  Gaussian(3, 1.4).run(made.view(), image.view());
  CHECK(made.bytes == plain_gaussian(image, 3, 1.4).bytes);
}

TEST_CASE("Weights sum to one, and constants stay what they are") {
  for (int radius = 0; radius <= max_smoothing_radius; ++radius) {
    for (const double sigma : {0.01, 0.7, 1.4, 3.0, 1000.0}) {
      const auto weights = gaussian_weights(radius, sigma);
      const auto plain = plain_gaussian_weights(radius, sigma);
      CHECK(std::equal(plain.begin(), plain.end(), weights.begin()));
      CHECK(2 * std::accumulate(weights.begin(), weights.end(), 0) - weights[0] == 65536);
      for (const int value : {0, 1, 128, 255}) {
        PixelImage image({41, 3}, luminance_format);
        std::fill(image.bytes.begin(), image.bytes.end(), static_cast<std::byte>(value));
        PixelImage made(image.image, image.format);
        Gaussian(radius, sigma).run(made.view(), image.view());
        CHECK(made.bytes == image.bytes);
      }
    }
  }
}

TEST_CASE("Gaussians that make no sense are refused") {
  CHECK_THROWS_AS(Gaussian(-1, 1.0), std::invalid_argument);
  CHECK_THROWS_AS(Gaussian(17, 1.0), std::invalid_argument);
  CHECK_THROWS_AS(Gaussian(3, 0.0), std::invalid_argument);
  PixelImage floats({4, 4}, {SampleType::float32, 1});
  CHECK_THROWS_AS(Gaussian(1, 1.0).run(floats.view(), floats.view()), std::invalid_argument);
}
