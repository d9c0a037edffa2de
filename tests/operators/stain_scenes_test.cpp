// What lies on a slide beside tissue doesn't change how its tissue is normalised.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <vector>

#include "operators/registry.hpp"
#include "operators/stain/stain_operator.hpp"
#include "slide/test_images.hpp"
#include "support/operator_runs.hpp"

using namespace slidestream;
using namespace slidestream::operators;
using namespace slidestream::test;

namespace {

constexpr int width = 640;
constexpr int height = 512;
using Rgb = std::array<int, 3>;

bool in_disc(int x, int y, int radius) {
  return (x - width / 2) * (x - width / 2) + (y - height / 2) * (y - height / 2) < radius * radius;
}

/// Two stains in grains of 4 x 4 pixels on a disc, glass around it, and what `draw` puts on them.
Picture scene(const std::function<void(int, int, Rgb&)>& draw) {
  Picture picture{width, height, 3, {}};
  std::mt19937 random(4);
  std::vector<std::array<double, 2>> grains(static_cast<std::size_t>(width / 4 * height / 4));
  std::uniform_real_distribution<double> amount(0.2, 1.3);
  for (auto& grain : grains) grain = {amount(random), amount(random)};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto& grain = grains[static_cast<std::size_t>(y / 4 * (width / 4) + x / 4)];
      Rgb colour = {242, 242, 244};
      for (std::size_t c = 0; c < 3 && in_disc(x, y, 150); ++c) {
        constexpr std::array<std::array<double, 3>, 2> stains = {{{0.65, 0.70, 0.29}, {0.07, 0.99, 0.11}}};
        colour[c] =
            static_cast<int>(std::lround(colour[c] * std::exp(-grain[0] * stains[0][c] - grain[1] * stains[1][c])));
      }
      draw(x, y, colour);
      for (const int value : colour) picture.data.push_back(static_cast<std::uint8_t>(value));
    }
  }
  return picture;
}

/// The scene as it is normalised by its own stains.
std::shared_ptr<const Stain> stain_of(const Picture& picture, double mpp = 8.0) {
  TemporaryFolder folder;
  TestDirectory level = tiled_directory(width, height, 64, 64, 3);
  for (int y = 0; y < height; y += 64) {
    for (int x = 0; x < width; x += 64) level.tiles.push_back(to_bytes(cut(picture, x, y, 64, 64)));
  }
  TestTiff tiff;
  tiff.directories = {level};
  const auto path = folder.write("slide.svs", tiff.bytes());
  const auto slide = Slide::open(path, {.mpp = mpp});
  Config config;
  config.operators.run = {"stain"};
  const auto prepared = make_operators(config).at(0)->prepare({*slide, 0, path, slide->info().mpp});
  return std::make_shared<const Stain>(static_cast<const StainParameters&>(*prepared).stain().map());
}

}  // namespace

TEST_CASE("Frames and pens change the colours of normalised tissue by at most 2 (long)") {
  const auto nothing = [](int, int, Rgb&) {};
  const auto frame = [](int x, int y, Rgb& colour) {
    if (x < 60 || y < 60 || x >= width - 60 || y >= height - 60) colour = {8, 6, 12};
  };
  const auto circle_of = [](const Rgb& ink) {
    return [ink](int x, int y, Rgb& colour) {
      if (in_disc(x, y, 215) && !in_disc(x, y, 185)) colour = ink;
    };
  };
  const auto stroke_of = [](const Rgb& ink) {
    return [ink](int x, int, Rgb& colour) {
      if (x >= 280 && x < 320) colour = ink;
    };
  };
  const Picture tissue = scene(nothing);
  const auto clean = stain_of(tissue);
  PixelImage image({width, height}, rgb_format);
  image.bytes = to_bytes(tissue);
  PixelImage expected(image.image, rgb_format);
  clean->run(expected.view(), image.view());
  std::vector<std::function<void(int, int, Rgb&)>> all = {frame};
  for (const Rgb& ink : {Rgb{20, 120, 60}, Rgb{25, 50, 150}, Rgb{190, 25, 40}, Rgb{45, 42, 48}}) {
    all.emplace_back(circle_of(ink));
    all.emplace_back(stroke_of(ink));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    PixelImage made(image.image, rgb_format);
    stain_of(scene(all[i]))->run(made.view(), image.view());
    int most = 0;
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        for (int c = 0; c < 3; ++c) {
          if (in_disc(x, y, 150)) most = std::max(most, std::abs(int{made.at(x, y, c)} - int{expected.at(x, y, c)}));
        }
      }
    }
    CHECK(most <= 2);
  }
}

namespace {

/// Of three strokes a sanitizer sees one.
#ifdef SLIDESTREAM_SANITIZED
constexpr std::size_t few = 1;
#else
constexpr std::size_t few = 3;
#endif

/// How much the tissue of the scene differs, in the mean of each channel, where it is normalised as a struck one.
std::array<double, 3> mean_changes(const std::function<void(int, int, Rgb&)>& strike, double mpp) {
  const Picture tissue = scene([](int, int, Rgb&) {});
  PixelImage image({width, height}, rgb_format);
  image.bytes = to_bytes(tissue);
  PixelImage expected(image.image, rgb_format);
  stain_of(tissue, mpp)->run(expected.view(), image.view());
  PixelImage made(image.image, rgb_format);
  stain_of(scene(strike), mpp)->run(made.view(), image.view());
  std::array<double, 3> sums{};
  int pixels = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      if (!in_disc(x, y, 150)) continue;
      ++pixels;
      for (std::size_t c = 0; c < 3; ++c) {
        const int channel = static_cast<int>(c);
        sums[c] += std::abs(int{made.at(x, y, channel)} - int{expected.at(x, y, channel)});
      }
    }
  }
  for (double& sum : sums) sum /= pixels;
  return sums;
}

}  // namespace

TEST_CASE("A stroke whose edges lie within pixels of the mask changes normalised tissue by at most 2 in the mean") {
  // Pixels are 1 micrometre wide. At either edge half of those under a pixel of the mask are ink; their mean isn't.
  const std::array<Rgb, 3> inks = {Rgb{40, 60, 180}, Rgb{50, 50, 140}, Rgb{25, 50, 150}};
  for (const Rgb& ink : std::span(inks).first(few)) {
    CAPTURE(ink[0]);
    const auto strike = [&](int x, int, Rgb& colour) {
      if (x >= 284 && x < 364) colour = ink;
    };
    for (const double change : mean_changes(strike, 1.0)) CHECK(change <= 2.0);
  }
}

TEST_CASE("Tissue that is seen through a stroke changes normalised tissue by at most 2 in the mean") {
  using Light = std::array<double, 3>;
  const std::array<Light, 3> strokes = {Light{0.25, 0.65, 0.4}, Light{0.25, 0.4, 0.8}, Light{0.85, 0.2, 0.25}};
  for (const Light& passes : std::span(strokes).first(few)) {
    CAPTURE(passes[1]);
    const auto strike = [&](int x, int, Rgb& colour) {
      if (x < 284 || x >= 364) return;
      for (std::size_t c = 0; c < 3; ++c) colour[c] = static_cast<int>(colour[c] * passes[c]);
    };
    for (const double change : mean_changes(strike, 2.0)) CHECK(change <= 2.0);
  }
}
