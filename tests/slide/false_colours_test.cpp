// Which colours of a smaller level can't be those of the slide, by blocks of both.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "slide/likeness/false_colours.hpp"

using namespace slidestream;

namespace {

using Change = std::function<MeanColour(const MeanColour&)>;

/// Tissue on glass, of which a quarter of the blocks is.
std::vector<ColourPair> blocks(const MeanColour& stain, const Change& change) {
  const MeanColour glass = {247.0, 246.0, 245.0};
  std::vector<ColourPair> pairs;
  for (int i = 0; i < 64; ++i) {
    const double density = i % 4 == 0 ? 0.0 : 0.4 + 0.6 * std::abs(std::sin(i));
    MeanColour large{};
    for (std::size_t k = 0; k < 3; ++k) large[k] = glass[k] + density * (stain[k] - glass[k]);
    MeanColour small = change(large);
    for (double& sample : small) sample = std::clamp(std::round(sample), 0.0, 255.0);
    pairs.push_back({small, large});
  }
  return pairs;
}

MeanColour to_ycbcr(const MeanColour& rgb) {
  const double y = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
  return {y, 128.0 + (rgb[2] - y) / 1.772, 128.0 + (rgb[0] - y) / 1.402};
}

Change each(const std::function<double(double)>& change) {
  return [change](const MeanColour& from) { return MeanColour{change(from[0]), change(from[1]), change(from[2])}; };
}

const std::vector<MeanColour> stains = {{120.0, 60.0, 150.0}, {226.0, 140.0, 190.0}, {150.0, 110.0, 70.0}};

}  // namespace

TEST_CASE("colours that were made YCbCr several times, or of which one is inverted, are false") {
  for (const MeanColour& stain : stains) {
    CAPTURE(stain[0]);
    for (int times = 1; times <= 4; ++times) {
      CAPTURE(times);
      CHECK(have_false_colours(blocks(stain, [times](MeanColour colour) {
        for (int i = 0; i < times; ++i) colour = to_ycbcr(colour);
        return colour;
      })));
    }
    CHECK(have_false_colours(blocks(stain, [](const MeanColour& c) { return MeanColour{c[0], 255.0 - c[1], c[2]}; })));
  }
}

TEST_CASE("colours that are darker, paler, tinted or of another gamma aren't false") {
  for (const MeanColour& stain : stains) {
    CAPTURE(stain[0]);
    for (const Change& change :
         {each([](double v) { return v; }), each([](double v) { return 0.6 * v; }),
          each([](double v) { return 200.0 + 0.2 * (v - 200.0); }), each([](double v) { return v + 40.0; }),
          each([](double v) { return 255.0 * std::pow(v / 255.0, 2.2); }),
          each([](double v) { return 255.0 * std::pow(v / 255.0, 1.0 / 2.2); }),
          each([](double v) { return 2.0 * v - 247.0; })}) {
      CHECK_FALSE(have_false_colours(blocks(stain, change)));
    }
    CHECK_FALSE(have_false_colours(blocks(stain, [](const MeanColour& c) {
      return MeanColour{c[0] - 20.0, 0.7 * c[1], c[2] - 10.0};
    })));
  }
}
