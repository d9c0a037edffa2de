#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "operators/tissue/ink.hpp"
#include "operators/tissue/tissue.hpp"
#include "random_rectangles.hpp"

using namespace slidestream;
using namespace slidestream::test;
using namespace slidestream::operators;

// What lies on slides: frames, ink, tissue of two strengths, clumps.

namespace {

Mask found_in(const PixelImage& image, const std::optional<double>& mpp, double scale, const TissueRule& rule) {
  const auto factor = static_cast<std::int64_t>(scale);
  return find_tissue(image.view(), {scale, scale}, {image.image.width * factor, image.image.height * factor}, mpp,
                     rule);
}

/// Glass with noise of the scanner on it; what is drawn over it is told by `at`, null: nothing.
template <class At>
PixelImage slide_with(Size size, const At& at) {
  PixelImage image(size, rgb_format);
  std::mt19937_64 random(5);
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      std::array<int, 3> colour = {242, 242, 244};
      at(x, y, colour);
      for (int c = 0; c < 3; ++c) {
        const int value = colour[static_cast<std::size_t>(c)] + static_cast<int>(random() % 3) - 1;
        image.set(x, y, c, static_cast<std::uint8_t>(std::clamp(value, 0, 255)));
      }
    }
  }
  return image;
}

using Rgb = std::array<int, 3>;

constexpr Rgb strong_stain = {170, 80, 150};
constexpr Rgb pale_stain = {240, 222, 236};  // S = 19

bool in_disc(std::int64_t x, std::int64_t y, std::int64_t centre_x, std::int64_t centre_y, std::int64_t radius) {
  const std::int64_t dx = x - centre_x;
  const std::int64_t dy = y - centre_y;
  return dx * dx + dy * dy < radius * radius;
}

}  // namespace

TEST_CASE("A tinted dark frame is no tissue, nor is the glass that it encloses") {
  const PixelImage image = slide_with({300, 240}, [](std::int64_t x, std::int64_t y, Rgb& colour) {
    if (in_disc(x, y, 150, 120, 40)) colour = strong_stain;
    if (x < 30 || y < 30 || x >= 270 || y >= 210) colour = {8, 6, 12};
  });
  for (const double fill : {262144.0, std::numeric_limits<double>::infinity()}) {
    TissueRule rule;
    rule.filled_um2 = fill;
    const double share = tissue_share(found_in(image, 0.25, 32.0, rule));
    CHECK(share == doctest::Approx(3.14159 * 40 * 40 / (300 * 240)).epsilon(0.01));
  }
}

TEST_CASE("Strokes of a pen are no tissue, nor is the glass that they encircle") {
  for (const Rgb& ink : {Rgb{20, 120, 60}, Rgb{25, 50, 150}, Rgb{190, 25, 40}, Rgb{45, 42, 48}, Rgb{50, 50, 140}}) {
    const PixelImage image = slide_with({300, 240}, [&](std::int64_t x, std::int64_t y, Rgb& colour) {
      const Rgb glass = colour;
      if (in_disc(x, y, 150, 120, 30)) colour = strong_stain;
      if (in_disc(x, y, 150, 120, 80) && !in_disc(x, y, 150, 120, 60)) colour = ink;
      // Mixed with glass at its edge.
      for (std::size_t c = 0; c < 3; ++c) {
        if (in_disc(x, y, 150, 120, 81) && !in_disc(x, y, 150, 120, 80)) colour[c] = (glass[c] + ink[c]) / 2;
      }
    });
    CAPTURE(ink[1]);
    TissueRule rule;
    rule.filled_um2 = std::numeric_limits<double>::infinity();
    const double disc = 3.14159 * 30 * 30 / (300 * 240);
    CHECK(tissue_share(found_in(image, 0.25, 32.0, rule)) == doctest::Approx(disc).epsilon(0.02));
    rule.drops_ink = false;
    CHECK(tissue_share(found_in(image, 0.25, 32.0, rule)) > 2.0 * disc);
  }
}

TEST_CASE("What is dark doesn't count as ink, whether it is a frame or a pen's") {
  const auto counted = [](bool has_frame, const Rgb& ink) {
    const PixelImage image = slide_with({300, 240}, [&](std::int64_t x, std::int64_t y, Rgb& colour) {
      if (in_disc(x, y, 150, 120, 40)) colour = strong_stain;
      if (x >= 40 && x < 90 && y >= 60 && y < 180) colour = ink;
      if (has_frame && (x < 30 || y < 30 || x >= 270 || y >= 210)) colour = {8, 6, 12};
    });
    std::int64_t pixels = -1;
    find_tissue(image.view(), {32.0, 32.0}, {9600, 7680}, 0.25, TissueRule{}, &pixels);
    return pixels;
  };
  constexpr Rgb glass = {242, 242, 244};
  CHECK(counted(true, glass) == 0);
  // Of a stroke the outermost pixels aren't even.
  constexpr std::int64_t stroke = 48 * 118;
  for (const bool has_frame : {false, true}) {
    CHECK(counted(has_frame, {25, 50, 150}) == stroke);
    CHECK(counted(has_frame, {45, 42, 48}) == stroke);
    CHECK(counted(has_frame, {30, 28, 34}) == 0);
  }
}

TEST_CASE("Even tissue in the colours of blood and of dense hematoxylin is no ink") {
  // Hematoxylin alone of densities 2 and 2.4, and of 2 with eosin of 0.2 (Ruifrok and Johnston).
  for (const Rgb& tissue : {Rgb{200, 70, 80}, Rgb{190, 60, 75}, Rgb{180, 60, 80}, Rgb{205, 80, 95}, Rgb{66, 59, 138},
                            Rgb{51, 45, 123}, Rgb{65, 49, 135}}) {
    const PixelImage image = slide_with({300, 240}, [&](std::int64_t x, std::int64_t y, Rgb& colour) {
      if (in_disc(x, y, 150, 120, 60)) colour = strong_stain;
      if (in_disc(x, y, 150, 120, 40)) colour = tissue;
    });
    CAPTURE(tissue[0]);
    Mask ink = empty_mask(image.image, {}, {});
    mark_ink(ink, image.view());
    CHECK(tissue_share(ink) == 0.0);
    const double disc = 3.14159 * 60 * 60 / (300 * 240);
    CHECK(tissue_share(found_in(image, 0.25, 32.0, TissueRule{})) == doctest::Approx(disc).epsilon(0.02));
  }
}

TEST_CASE("What has a pen's colour and is small or uneven is no ink") {
  const auto marked = [](const PixelImage& image) {
    Mask ink = empty_mask(image.image, {}, {});
    mark_ink(ink, image.view());
    return tissue_share(ink);
  };
  const auto square = [](std::int64_t side, int uneven) {
    return slide_with({80, 80}, [=](std::int64_t x, std::int64_t y, Rgb& colour) {
      if (x >= 20 && y >= 20 && x < 20 + side && y < 20 + side) colour = {25, 50 + uneven * int(x % 2), 150};
    });
  };
  // Without the edge, which isn't even, 16 x 16 pixels are left of 18 x 18.
  CHECK(marked(square(18, 0)) > 0.0);
  CHECK(marked(square(17, 0)) == 0.0);
  CHECK(marked(square(40, 0)) > 0.2);
  CHECK(marked(square(40, 30)) == 0.0);
}

TEST_CASE("Strokes of 32 and 40 micrometres on glass are ink, whose colour is told") {
  for (const std::int64_t wide : {4, 5}) {
    for (const Rgb& ink : {Rgb{20, 120, 60}, Rgb{25, 50, 150}, Rgb{190, 25, 40}, Rgb{45, 42, 48}}) {
      // Along (4, 3), so that 5 is the length of (3, -4). Of each pixel 4 x 4 points are inked or glass.
      const PixelImage image = slide_with({300, 240}, [&](std::int64_t x, std::int64_t y, Rgb& colour) {
        if (in_disc(x, y, 220, 60, 30)) colour = strong_stain;
        if (x < 20 || x >= 240) return;
        int inked = 0;
        for (int j = 1; j < 8; j += 2) {
          for (int i = 1; i < 8; i += 2) inked += std::abs(3 * (8 * x + i) - 4 * (8 * y + j) + 1440) < 20 * wide;
        }
        for (std::size_t c = 0; c < 3; ++c) colour[c] += (ink[c] - colour[c]) * inked / 16;
      });
      CAPTURE(wide);
      CAPTURE(ink[1]);
      Mask marked = empty_mask(image.image, {}, {});
      InkColours colours;
      mark_ink(marked, image.view(), &colours);
      CHECK(colours.green_to_blue == (ink[0] < 30));
      CHECK(colours.red == (ink[0] > 100));
      const double disc = 3.14159 * 30 * 30 / (300 * 240);
      TissueRule rule;
      CHECK(tissue_share(found_in(image, 0.25, 32.0, rule)) == doctest::Approx(disc).epsilon(0.02));
      rule.drops_ink = false;
      CHECK(tissue_share(found_in(image, 0.25, 32.0, rule)) > 1.1 * disc);
    }
  }
}

TEST_CASE("A strand in a pen's colour is no ink if it is short, uneven, pale, or no glass is on one side") {
  const auto is_marked = [](std::int64_t length, const Rgb& ink, int uneven, bool has_tissue) {
    const PixelImage image = slide_with({80, 80}, [&](std::int64_t x, std::int64_t y, Rgb& colour) {
      if (has_tissue && y >= 33 && y < 60) colour = strong_stain;
      if (x < 20 || x >= 20 + length || y < 30 || y >= 33) return;
      colour = ink;
      colour[1] += uneven * static_cast<int>(x % 2);
    });
    Mask ink_mask = empty_mask(image.image, {}, {});
    mark_ink(ink_mask, image.view());
    return tissue_share(ink_mask) > 0.0;
  };
  constexpr Rgb blue = {25, 50, 150};
  // Without its ends, 3 x 22 pixels are left of 3 x 24.
  CHECK(is_marked(24, blue, 0, false));
  CHECK(!is_marked(23, blue, 0, false));
  CHECK(is_marked(40, blue, 0, false));
  CHECK(!is_marked(40, blue, 30, false));
  CHECK(!is_marked(40, {60, 100, 170}, 0, false));  // S = 165
  CHECK(!is_marked(40, blue, 0, true));
}

TEST_CASE("Strokes of ink are widened, and what lies between them filled, however near they are (long)") {
  constexpr std::int64_t reach = 4;
  std::mt19937_64 random(11);
  for (int turn = 0; turn < 40; ++turn) {
    const std::int64_t width = 40 + static_cast<std::int64_t>(random() % 60);
    const std::int64_t height = 140;
    // Stripes 5 to 9 pixels wide with gaps of 1 to 14. Their edges aren't even: 3 x 120 pixels are ink at least.
    std::vector<std::uint8_t> inked(static_cast<std::size_t>(width), 0);
    for (std::int64_t x = 1 + static_cast<std::int64_t>(random() % 6); x < width;) {
      const std::int64_t end = x + 5 + static_cast<std::int64_t>(random() % 5);
      if (end >= width) break;
      std::fill(inked.begin() + x, inked.begin() + end, std::uint8_t{1});
      x = end + 1 + static_cast<std::int64_t>(random() % 14);
    }
    const auto is_inked = [&](std::int64_t x, std::int64_t y) {
      return x >= 0 && x < width && y >= 10 && y < 130 && inked[static_cast<std::size_t>(x)] != 0;
    };
    // Beside ink, glass of the first colour may be mixed with it and that of the second can't.
    const bool is_mixed = turn % 2 == 0;
    PixelImage image({width, height}, rgb_format);
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const Rgb glass = {is_mixed ? 242 : 246, 242, 244};
        const Rgb colour = is_inked(x, y) ? Rgb{25, 50, 150} : glass;
        for (int c = 0; c < 3; ++c) image.set(x, y, c, static_cast<std::uint8_t>(colour[static_cast<std::size_t>(c)]));
      }
    }
    Mask ink = empty_mask(image.image, {}, {});
    mark_ink(ink, image.view());
    // What a closing with a square gives, pixel by pixel. Outside of the image nothing is known.
    const auto any = [&](std::int64_t x, std::int64_t y, std::int64_t by, const auto& holds) {
      for (std::int64_t j = std::max<std::int64_t>(y - by, 0); j <= std::min(y + by, height - 1); ++j) {
        for (std::int64_t i = std::max<std::int64_t>(x - by, 0); i <= std::min(x + by, width - 1); ++i) {
          if (holds(i, j)) return true;
        }
      }
      return false;
    };
    const auto is_edge = [&](std::int64_t x, std::int64_t y) {
      return any(x, y, 1, [&](std::int64_t i, std::int64_t j) { return !is_inked(i, j); });
    };
    Mask wide = empty_mask(image.image, {}, {});
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const bool near =
            any(x, y, reach, [&](std::int64_t i, std::int64_t j) { return is_inked(i, j) && !is_edge(i, j); });
        wide.row(y)[static_cast<std::size_t>(x)] = near ? 1 : 0;
      }
    }
    std::int64_t wrong = 0;
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        const bool kept = !any(
            x, y, reach, [&](std::int64_t i, std::int64_t j) { return wide.row(j)[static_cast<std::size_t>(i)] == 0; });
        const bool near = wide.row(y)[static_cast<std::size_t>(x)] != 0;
        const bool expected = kept || (near && (is_mixed || is_inked(x, y)));
        wrong += (ink.row(y)[static_cast<std::size_t>(x)] != 0) != expected;
      }
    }
    CAPTURE(turn);
    CHECK(wrong == 0);
  }
}

TEST_CASE("Pale tissue is found beside strong stain") {
  const PixelImage image = slide_with({300, 240}, [](std::int64_t x, std::int64_t y, Rgb& colour) {
    if (in_disc(x, y, 80, 120, 50)) colour = strong_stain;
    if (in_disc(x, y, 220, 120, 50)) colour = pale_stain;
  });
  TissueRule rule;
  const double both = 2.0 * 3.14159 * 50 * 50 / (300 * 240);
  CHECK(tissue_share(found_in(image, 0.25, 32.0, rule)) == doctest::Approx(both).epsilon(0.01));
  rule.method = TissueMethod::fixed;
  CHECK(tissue_share(found_in(image, 0.25, 32.0, rule)) == doctest::Approx(both).epsilon(0.01));
  rule.method = TissueMethod::otsu;
  CHECK(tissue_share(found_in(image, 0.25, 32.0, rule)) == doctest::Approx(both / 2.0).epsilon(0.01));
}

TEST_CASE("Clumps of 100 micrometres are tissue, dust isn't") {
  std::int64_t drawn_pixels = 0;
  const PixelImage image = slide_with({400, 300}, [&](std::int64_t x, std::int64_t y, Rgb& colour) {
    if (in_disc(x % 50, y % 60, 25, 30, 6)) {
      colour = strong_stain;
      ++drawn_pixels;
    }
    if (x % 50 < 3 && y % 60 < 3) colour = {80, 60, 70};
  });
  const double share = tissue_share(found_in(image, 0.25, 32.0, TissueRule{}));
  CHECK(share == doctest::Approx(static_cast<double>(drawn_pixels) / (400 * 300)).epsilon(0.05));
}

TEST_CASE("A pixel that is mostly glass is none of the edge") {
  const auto edge_of = [](int part) {
    return slide_with({60, 60}, [part](std::int64_t x, std::int64_t, Rgb& colour) {
      if (x < 30) colour = strong_stain;
      for (std::size_t c = 0; c < 3 && x == 30; ++c) colour[c] += (strong_stain[c] - colour[c]) * part / 100;
    });
  };
  const auto columns = [&](int part) {
    const Mask mask = found_in(edge_of(part), 8.0, 1.0, TissueRule{});
    return std::count(mask.row(20).begin(), mask.row(20).end(), 1);
  };
  CHECK(columns(60) == 31);
  CHECK(columns(15) == 30);
}
