#include "operators/stain/stain.hpp"

#include <doctest/doctest.h>
#include <slidestream/error.hpp>

#include <cmath>
#include <random>
#include <string>

#include "random_rectangles.hpp"
#include "support/plain_operators.hpp"

using namespace slidestream;
using namespace slidestream::test;
using namespace slidestream::operators;

namespace {

constexpr StainBasis slide_stains = {{{{0.62, 0.70, 0.35}, {0.28, 0.85, 0.45}}}, {1.4, 0.9}, {254, 254, 254}};

StainMatrix matrix_of(StainOutput output) { return stain_matrix(slide_stains, published_stains(), output); }

/// The pixels that are tissue, row by row.
std::vector<std::uint8_t> pixels_of(const PixelImage& image, const Mask& mask) {
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < mask.size.height; ++y) {
    for (std::int64_t x = 0; x < mask.size.width; ++x) {
      if (mask.row(y)[static_cast<std::size_t>(x)] == 0) continue;
      for (int c = 0; c < 3; ++c) pixels.push_back(static_cast<std::uint8_t>(image.at(x, y, c)));
    }
  }
  return pixels;
}

/// A patch with known stains: amounts from 0 to the maxima.
PixelImage painted(Size size, const StainBasis& stains) {
  PixelImage image(size, rgb_format);
  std::mt19937_64 random(4);
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      // Some pixels of one stain alone, most of both.
      const double h = random() % 8 == 0 ? 0.0 : static_cast<double>(random() % 1000) / 1000.0 * stains.maxima[0];
      const double e = random() % 8 == 0 ? 0.0 : static_cast<double>(random() % 1000) / 1000.0 * stains.maxima[1];
      for (std::size_t c = 0; c < 3; ++c) {
        const double value = 255.0 * std::exp(-h * stains.colours[0][c] - e * stains.colours[1][c]) - 1.0;
        image.set(x, y, static_cast<int>(c), static_cast<std::uint8_t>(std::max(std::nearbyint(value), 0.0)));
      }
    }
  }
  return image;
}

Mask full_mask(Size size) {
  Mask mask = empty_mask(size, {}, size);
  std::fill(mask.pixels.begin(), mask.pixels.end(), std::uint8_t{1});
  return mask;
}

std::string failure_of(const PixelImage& image, const Mask& mask) {
  try {
    fit_stains(pixels_of(image, mask), slide_stains.white);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Normalised pixels are the definition, whole and in rectangles (long)") {
  for (const StainOutput output : {StainOutput::normalised, StainOutput::hematoxylin, StainOutput::eosin}) {
    for (const WhitePoint& white : {WhitePoint{254, 254, 254}, WhitePoint{240, 255, 201}, WhitePoint{3, 90, 128}}) {
      StainMap map = stain_map(slide_stains, published_stains(), output);
      map.from = white;
      map.to = {white[2], white[0], white[1]};
      const Stain stain(map);
      check_rectangles(
          rgb_format, rgb_format, {}, [&](const HostView& out, const ConstHostView& in) { stain.run(out, in); },
          [&](const PixelImage& image) { return plain_stain(image, map.matrix, map.from, map.to); });
    }
  }
}

TEST_CASE("Every colour is within half a step and a rounding of the exact exponential") {
  const StainMatrix matrix = matrix_of(StainOutput::normalised);
  const Stain stain({matrix, {254, 254, 254}, {254, 254, 254}});
  PixelImage image({256, 256}, rgb_format);
  double most = 0.0;
  for (int red = 0; red < 256; red += 15) {
    for (int g = 0; g < 256; ++g) {
      for (int b = 0; b < 256; ++b) {
        image.set(b, g, 0, static_cast<std::uint8_t>(red));
        image.set(b, g, 1, static_cast<std::uint8_t>(g));
        image.set(b, g, 2, static_cast<std::uint8_t>(b));
      }
    }
    PixelImage made(image.image, rgb_format);
    stain.run(made.view(), image.view());
    for (int g = 0; g < 256; ++g) {
      for (int b = 0; b < 256; ++b) {
        const double logs[3] = {std::log(std::min(red + 1, 255) / 255.0), std::log(std::min(g + 1, 255) / 255.0),
                                std::log(std::min(b + 1, 255) / 255.0)};
        for (std::size_t c = 0; c < 3; ++c) {
          double t = 0.0;
          for (std::size_t j = 0; j < 3; ++j) t += matrix[c][j] / 65536.0 * logs[j];
          const double exact = std::clamp(255.0 * std::exp(t) - 1.0, 0.0, 255.0);
          most = std::max(most, std::abs(exact - made.at(b, g, static_cast<int>(c))));
        }
      }
    }
  }
  CHECK(most < 0.6);
  CHECK(most > 0.45);
}

TEST_CASE("Pixels wholly outside the table's range are black or white") {
  constexpr std::int32_t most = 1023 * 65536;
  const Stain dark({{{{most, most, most}, {0, 0, 0}, {-most, -most, -most}}}, {255, 255, 255}, {255, 255, 255}});
  PixelImage image({2, 1}, rgb_format);
  for (int c = 0; c < 3; ++c) image.set(1, 0, c, std::uint8_t{100});
  PixelImage made(image.image, rgb_format);
  dark.run(made.view(), image.view());
  for (int x = 0; x < 2; ++x) {
    CHECK(made.at(x, 0, 0) == 0);
    CHECK(made.at(x, 0, 1) == 255);
    CHECK(made.at(x, 0, 2) == 255);
  }
}

TEST_CASE("Half way between two steps the darker one is taken") {
  // A step is 2^21: half of one is had from a logarithm that divides 2^20.
  std::uint8_t white = 255;
  std::uint8_t sample_below = 0;
  std::int32_t log = 0;
  while (log == 0 && --white > 1) {
    const auto logs = log_samples(white);
    for (std::uint8_t v = 0; v < white && log == 0; ++v) {
      if ((1 << 20) % logs[v] != 0) continue;
      log = -logs[v];
      sample_below = v;
    }
  }
  REQUIRE(log > 0);
  const ExpTable table = exp_samples(254);
  const auto sample = [&](int step) { return table.entries[static_cast<std::size_t>(table.first + step)]; };
  for (int half : {1, 3, 129, 255}) {
    const std::int32_t entry = half * ((1 << 20) / log);
    const Stain stain({{{{entry, 0, 0}, {0, 0, 0}, {0, 0, 0}}}, {white, 255, 255}, {254, 254, 254}});
    PixelImage image({1, 1}, rgb_format);
    image.set(0, 0, 0, sample_below);
    PixelImage made(image.image, rgb_format);
    stain.run(made.view(), image.view());
    CHECK(made.at(0, 0, 0) == sample((half + 1) / 2));
  }
}

TEST_CASE("The slide's white becomes the reference's, and what is brighter does, too") {
  for (const WhitePoint& white : {WhitePoint{242, 242, 244}, WhitePoint{241, 236, 239}, WhitePoint{255, 200, 180}}) {
    StainBasis slide = slide_stains;
    slide.white = white;
    const Stain stain(stain_map(slide, published_stains(), StainOutput::normalised));
    PixelImage image({2, 1}, rgb_format);
    for (int c = 0; c < 3; ++c) {
      image.set(0, 0, c, white[static_cast<std::size_t>(c)]);
      image.set(1, 0, c, std::uint8_t{255});
    }
    PixelImage made(image.image, rgb_format);
    stain.run(made.view(), image.view());
    for (int x = 0; x < 2; ++x) {
      for (int c = 0; c < 3; ++c) CHECK(made.at(x, 0, c) == 240);
    }
  }
}

TEST_CASE("White is the median of the bright background") {
  PixelImage image({100, 40}, rgb_format);
  Mask mask = empty_mask(image.image, {}, image.image);
  std::mt19937_64 random(2);
  const auto paint = [&](std::int64_t first, std::int64_t last, std::array<int, 3> colour, int noise, bool tissue) {
    for (std::int64_t y = first; y < last; ++y) {
      for (std::int64_t x = 0; x < 100; ++x) {
        mask.row(y)[static_cast<std::size_t>(x)] = tissue ? 1 : 0;
        for (std::size_t c = 0; c < 3; ++c) {
          const int off = noise == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(2 * noise + 1)) - noise;
          image.set(x, y, static_cast<int>(c), static_cast<std::uint8_t>(colour[c] + off));
        }
      }
    }
  };
  const auto white = [&] { return measure_white(image.view(), mask); };
  paint(0, 20, {180, 90, 150}, 9, true);
  paint(20, 38, {242, 241, 245}, 4, false);
  paint(38, 40, {2, 3, 1}, 1, false);  // a black border
  for (std::size_t c = 0; c < 3; ++c) CHECK(std::abs(white()[c] - std::array{242, 241, 245}[c]) <= 1);
  // Missing tiles are pure white, and don't count where there is glass.
  paint(5, 15, {255, 255, 255}, 0, false);
  for (std::size_t c = 0; c < 3; ++c) CHECK(std::abs(white()[c] - std::array{242, 241, 245}[c]) <= 1);
  // Where nothing else is background they are glass.
  paint(15, 40, {180, 90, 150}, 9, true);
  CHECK(white() == WhitePoint{255, 255, 255});
  paint(0, 40, {180, 90, 150}, 9, true);
  CHECK(white() == usual_white);
  paint(0, 9, {250, 250, 250}, 0, false);
  CHECK(white() == usual_white);
  paint(0, 10, {250, 249, 250}, 0, false);
  CHECK(white() == WhitePoint{250, 249, 250});
}

TEST_CASE("The stains that an image was painted with are found") {
  const double unit_h = std::sqrt(0.62 * 0.62 + 0.70 * 0.70 + 0.35 * 0.35);
  const double unit_e = std::sqrt(0.28 * 0.28 + 0.85 * 0.85 + 0.45 * 0.45);
  const PixelImage image = painted({300, 300}, slide_stains);
  const StainBasis found = fit_stains(pixels_of(image, full_mask(image.image)), {254, 254, 254});
  for (std::size_t j = 0; j < 3; ++j) {
    CHECK(found.colours[0][j] == doctest::Approx(slide_stains.colours[0][j] / unit_h).epsilon(0.01));
    CHECK(found.colours[1][j] == doctest::Approx(slide_stains.colours[1][j] / unit_e).epsilon(0.01));
  }
  CHECK(found.maxima[0] == doctest::Approx(1.4 * unit_h).epsilon(0.01));
  CHECK(found.maxima[1] == doctest::Approx(0.9 * unit_e).epsilon(0.01));
}

TEST_CASE("An image normalised to its own stains stays as it is") {
  const PixelImage image = painted({60, 60}, slide_stains);
  const Stain stain(stain_map(slide_stains, slide_stains, StainOutput::normalised));
  PixelImage made(image.image, rgb_format);
  stain.run(made.view(), image.view());
  int far = 0;
  for (std::size_t i = 0; i < image.bytes.size(); ++i) {
    far += std::abs(static_cast<int>(made.bytes[i]) - static_cast<int>(image.bytes[i])) > 1;
  }
  CHECK(far == 0);
}

TEST_CASE("Slides without stains fail in one line") {
  PixelImage white({100, 100}, rgb_format);
  std::fill(white.bytes.begin(), white.bytes.end(), std::byte{255});
  CHECK(failure_of(white, full_mask(white.image)) ==
        "only 0 stained pixels of tissue in the blocks that were looked at; stains need 1000");
  PixelImage grey({100, 100}, rgb_format);
  for (std::size_t i = 0; i < grey.bytes.size(); ++i) grey.bytes[i] = static_cast<std::byte>(20 + i / 3 % 150);
  CHECK(failure_of(grey, full_mask(grey.image)) != "");
  PixelImage constant({100, 100}, rgb_format);
  for (std::size_t i = 0; i < constant.bytes.size(); ++i) constant.bytes[i] = static_cast<std::byte>(60 + 40 * (i % 3));
  CHECK(failure_of(constant, full_mask(constant.image)) != "");
  const PixelImage stained = painted({100, 100}, slide_stains);
  CHECK(failure_of(stained, empty_mask(stained.image, {}, stained.image)) != "");
  CHECK(failure_of(stained, full_mask(stained.image)) == "");
}

TEST_CASE("A thousand stained pixels are enough") {
  PixelImage image = painted({1000, 2}, slide_stains);
  const StainBasis deep = {slide_stains.colours, {3.0, 3.0}};
  image = painted({1000, 2}, deep);
  Mask mask = empty_mask(image.image, {}, image.image);
  std::int64_t stained = 0;
  for (std::int64_t i = 0; i < 2000 && stained < 1000; ++i) {
    bool dense = true;
    for (int c = 0; c < 3; ++c) dense = dense && -std::log((image.at(i % 1000, i / 1000, c) + 1) / 255.0) >= 0.15;
    mask.pixels[static_cast<std::size_t>(i)] = 1;
    stained += dense;
  }
  REQUIRE(stained == 1000);
  CHECK(failure_of(image, mask) == "");
  image.set(0, 0, 0, std::uint8_t{255});
  image.set(1, 0, 0, std::uint8_t{255});
  CHECK(failure_of(image, mask).substr(0, 7) == "only 99");
}

TEST_CASE("Outputs of single stains sum to the normalised one in the logarithm") {
  const StainMatrix both = matrix_of(StainOutput::normalised);
  const StainMatrix h = matrix_of(StainOutput::hematoxylin);
  const StainMatrix e = matrix_of(StainOutput::eosin);
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t j = 0; j < 3; ++j) CHECK(std::abs(both[c][j] - h[c][j] - e[c][j]) <= 1);
  }
}
