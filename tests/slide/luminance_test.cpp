#include "slide/luminance.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace slidestream;

TEST_CASE("the formula's ends and roundings") {
  static_assert(luminance(0, 0, 0) == 0);
  static_assert(luminance(255, 255, 255) == 255);
  static_assert(luminance(255, 0, 0) == 76);
  static_assert(luminance(0, 255, 0) == 150);
  static_assert(luminance(0, 0, 255) == 29);
  for (std::uint32_t v = 0; v < 256; ++v) CHECK(luminance(v, v, v) == v);
}

TEST_CASE("rows of any length and layout equal the plain formula, and nothing beyond is touched") {
  std::mt19937 random(1);
  for (int samples = 1; samples <= 5; ++samples) {
    for (int count = 0; count < 150; ++count) {
      std::vector<std::uint8_t> from(static_cast<std::size_t>(count * samples));
      for (std::uint8_t& v : from) v = static_cast<std::uint8_t>(random() % 3 == 0 ? 255 : random());
      for (const Colour colour : {Colour::rgb, Colour::grey, Colour::grey_inverted, Colour::ycbcr}) {
        if (colour == Colour::rgb && samples < 3) continue;
        std::vector<std::uint8_t> to(static_cast<std::size_t>(count + 1), 77), expected = to;
        for (int i = 0; i < count; ++i) {
          const std::uint8_t* p = from.data() + i * samples;
          expected[i] = colour == Colour::rgb             ? luminance(p[0], p[1], p[2])
                        : colour == Colour::grey_inverted ? static_cast<std::uint8_t>(255 - p[0])
                                                          : p[0];
        }
        interleaved_to_luminance(to.data(), from.data(), count, samples, colour);
        REQUIRE(to == expected);
      }
    }
  }
}
