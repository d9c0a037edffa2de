// Strokes of small type in blocks of a picture: what is found fast is what a plain look at each pixel finds.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "slide/likeness/strokes.hpp"

using namespace slidestream;

namespace {

class RandomPictures {
 public:
  /// Glass with noise and bars of up to four pixels, in some channels.
  RgbPicture glass_with_bars(int width, int height) {
    RgbPicture picture{width, height, {}};
    const int noise = 1 + up_to(12);
    const int glass = up_to(256 - noise);
    for (int i = 0; i < 3 * width * height; ++i) {
      picture.samples.push_back(static_cast<std::uint8_t>(glass + up_to(noise)));
    }
    for (int bar = up_to(24); bar > 0; --bar) draw_bar(picture);
    return picture;
  }

  int up_to(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }

 private:
  void draw_bar(RgbPicture& picture) {
    const auto ink = static_cast<std::uint8_t>(up_to(256));
    const auto first = static_cast<std::size_t>(up_to(3));
    const int left = up_to(static_cast<int>(picture.width));
    const int top = up_to(static_cast<int>(picture.height));
    const bool is_upright = up_to(2) == 0;
    const int right = std::min<int>(left + (is_upright ? 1 + up_to(4) : 12), static_cast<int>(picture.width));
    const int bottom = std::min<int>(top + (is_upright ? 12 : 1 + up_to(4)), static_cast<int>(picture.height));
    for (int y = top; y < bottom; ++y) {
      for (int x = left; x < right; ++x) {
        for (std::size_t i = first; i < 3; ++i) {
          picture.samples[static_cast<std::size_t>(3 * (y * picture.width + x)) + i] = ink;
        }
      }
    }
  }

  std::mt19937 random_{7};
};

int value_at(const RgbPicture& picture, std::int64_t x, std::int64_t y, int channel) {
  return picture.pixel(x, y)[channel];
}

/// By how much a value lies below or above both sides, if these have one colour.
int plain_height(int value, int before, int behind) {
  if (std::abs(before - behind) > 6) return 0;
  return std::max({0, std::min(before, behind) - value, value - std::max(before, behind)});
}

int plain_strength(const RgbPicture& picture, std::int64_t left, std::int64_t top, int channel) {
  std::vector<int> heights;
  for (std::int64_t y = top; y < top + 8; ++y) {
    for (std::int64_t x = left; x < left + 8; ++x) {
      int height = 0;
      for (int reach = 2; reach <= 8; ++reach) {
        const int value = value_at(picture, x, y, channel);
        if (x >= reach && x + reach < picture.width) {
          height = std::max(height, plain_height(value, value_at(picture, x - reach, y, channel),
                                                 value_at(picture, x + reach, y, channel)));
        }
        if (y >= reach && y + reach < picture.height) {
          height = std::max(height, plain_height(value, value_at(picture, x, y - reach, channel),
                                                 value_at(picture, x, y + reach, channel)));
        }
      }
      heights.push_back(height);
    }
  }
  std::sort(heights.rbegin(), heights.rend());
  return heights[2] >= least_type_stroke ? heights[2] : 0;
}

ChannelRange plain_range(const RgbPicture& picture, std::int64_t left, std::int64_t top, std::int64_t right,
                         std::int64_t bottom, int channel) {
  ChannelRange range;
  for (std::int64_t y = std::max<std::int64_t>(0, top); y < std::min(bottom, picture.height); ++y) {
    for (std::int64_t x = std::max<std::int64_t>(0, left); x < std::min(right, picture.width); ++x) {
      const int value = value_at(picture, x, y, channel);
      range.add({value, value});
    }
  }
  return range;
}

}  // namespace

TEST_CASE("strokes of random pictures: as a plain look at each pixel finds them") {
  RandomPictures random;
  std::size_t with_strokes = 0;
  std::size_t without = 0;
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const RgbPicture picture = random.glass_with_bars(8 + random.up_to(50), 8 + random.up_to(50));
    for (std::int64_t top = 0; top + 8 <= picture.height; top += 1 + random.up_to(8)) {
      for (std::int64_t left = 0; left + 8 <= picture.width; left += 1 + random.up_to(8)) {
        const std::array<int, 3> found = stroke_strengths(picture, left, top);
        const std::array<int, 3> plain = {plain_strength(picture, left, top, 0), plain_strength(picture, left, top, 1),
                                          plain_strength(picture, left, top, 2)};
        REQUIRE(found == plain);
        ++(plain == std::array<int, 3>{} ? without : with_strokes);
      }
    }
  }
  CHECK(with_strokes > 100);
  CHECK(without > 100);
}

TEST_CASE("contrast of blocks and ranges of rectangles: as a plain look at each pixel finds them") {
  RandomPictures random;
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const RgbPicture picture = random.glass_with_bars(1 + random.up_to(60), 1 + random.up_to(60));
    const BlockContrast contrast(picture);
    for (std::int64_t row = 0; 8 * row < picture.height; ++row) {
      for (std::int64_t column = 0; 8 * column < picture.width; ++column) {
        bool has_any = false;
        for (int channel = 0; channel < 3; ++channel) {
          const ChannelRange range =
              plain_range(picture, 8 * column - 8, 8 * row - 8, 8 * column + 16, 8 * row + 16, channel);
          has_any = has_any || range.size() >= least_type_stroke;
        }
        CHECK(contrast.has_any(column, row) == has_any);
      }
    }
    const std::int64_t left = random.up_to(static_cast<int>(picture.width));
    const std::int64_t top = random.up_to(static_cast<int>(picture.height));
    const ColourRange found = range_within(picture, left, top, picture.width, picture.height, 256);
    const ColourRange first = range_within(picture, left, top, picture.width, picture.height, 25);
    bool differs = true;
    for (int channel = 0; channel < 3; ++channel) {
      const ChannelRange plain = plain_range(picture, left, top, picture.width, picture.height, channel);
      CHECK(found[static_cast<std::size_t>(channel)].least == plain.least);
      CHECK(found[static_cast<std::size_t>(channel)].most == plain.most);
      differs = differs && plain.size() >= 25;
    }
    // Rows are left out only where all three are known to differ.
    CHECK(std::ranges::all_of(first, [](const ChannelRange& range) { return range.size() >= 25; }) == differs);
  }
}
