#include "operators/tissue/tissue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "image/mirror.hpp"
#include "operators/tissue/components.hpp"
#include "random_rectangles.hpp"

using namespace slidestream;
using namespace slidestream::test;
using namespace slidestream::operators;

namespace {

constexpr Border around = border_of(1);

std::uint8_t plain_saturation(int r, int g, int b) {
  const int most = std::max({r, g, b});
  const int least = std::min({r, g, b});
  return static_cast<std::uint8_t>(most <= 3 ? 0 : (255 * (most - least) + most / 2) / most);
}

template <class Value>
PixelImage each_pixel(const PixelImage& image, const Value& value) {
  PixelImage made(image.image, luminance_format);
  for (std::int64_t y = 0; y < image.image.height; ++y) {
    for (std::int64_t x = 0; x < image.image.width; ++x) made.set(x, y, 0, value(x, y));
  }
  return made;
}

PixelImage plain_median(const PixelImage& image) {
  return each_pixel(image, [&](std::int64_t x, std::int64_t y) {
    std::vector<std::uint8_t> values;
    for (int j = -1; j <= 1; ++j) {
      for (int i = -1; i <= 1; ++i) {
        values.push_back(
            image.at(mirror_symmetric(x + i, image.image.width), mirror_symmetric(y + j, image.image.height)));
      }
    }
    std::sort(values.begin(), values.end());
    return values[4];
  });
}

/// The variance between the classes in long double: exact enough where no two are nearly equal.
int plain_otsu(const std::array<std::uint64_t, 256>& histogram) {
  int best = 0;
  long double most = 0.0L;
  for (int t = 0; t < 255; ++t) {
    long double n[2] = {};
    long double sum[2] = {};
    for (int v = 0; v < 256; ++v) {
      n[v > t] += static_cast<long double>(histogram[static_cast<std::size_t>(v)]);
      sum[v > t] += static_cast<long double>(v) * static_cast<long double>(histogram[static_cast<std::size_t>(v)]);
    }
    if (n[0] == 0 || n[1] == 0) continue;
    const long double apart = sum[0] / n[0] - sum[1] / n[1];
    const long double variance = n[0] * n[1] * apart * apart;
    if (variance > most * (1.0L + 1e-15L)) {
      most = variance;
      best = t;
    }
  }
  return best;
}

/// Labels by flooding, one component at a time.
std::vector<int> flooded(const Mask& mask, std::uint8_t value, Connectivity connectivity) {
  std::vector<int> labels(mask.pixels.size(), -1);
  int next = 0;
  for (std::size_t start = 0; start < labels.size(); ++start) {
    if (mask.pixels[start] != value || labels[start] >= 0) continue;
    std::vector<std::size_t> open = {start};
    labels[start] = next;
    while (!open.empty()) {
      const auto x = static_cast<std::int64_t>(open.back()) % mask.size.width;
      const auto y = static_cast<std::int64_t>(open.back()) / mask.size.width;
      open.pop_back();
      for (int j = -1; j <= 1; ++j) {
        for (int i = -1; i <= 1; ++i) {
          if (connectivity == Connectivity::four && i != 0 && j != 0) continue;
          if (x + i < 0 || y + j < 0 || x + i >= mask.size.width || y + j >= mask.size.height) continue;
          const auto at = static_cast<std::size_t>((y + j) * mask.size.width + x + i);
          if (mask.pixels[at] != value || labels[at] >= 0) continue;
          labels[at] = next;
          open.push_back(at);
        }
      }
    }
    ++next;
  }
  return labels;
}

/// Glass, with pink wherever a line of `rows` has a '#'; each character is `block` x `block` pixels.
PixelImage drawn(const std::vector<std::string>& rows, std::int64_t block) {
  const Size size = {static_cast<std::int64_t>(rows[0].size()) * block, static_cast<std::int64_t>(rows.size()) * block};
  PixelImage image(size, rgb_format);
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      const bool pink = rows[static_cast<std::size_t>(y / block)][static_cast<std::size_t>(x / block)] == '#';
      image.set(x, y, 0, std::uint8_t{240});
      image.set(x, y, 1, pink ? std::uint8_t{140} : std::uint8_t{238});
      image.set(x, y, 2, pink ? std::uint8_t{200} : std::uint8_t{241});
    }
  }
  return image;
}

/// The same of a mask: what stands in the middle of each block.
std::vector<std::string> summary(const Mask& mask, std::int64_t block) {
  std::vector<std::string> rows;
  for (std::int64_t y = block / 2; y < mask.size.height; y += block) {
    rows.emplace_back();
    for (std::int64_t x = block / 2; x < mask.size.width; x += block) {
      rows.back() += mask.row(y)[static_cast<std::size_t>(x)] != 0 ? '#' : '.';
    }
  }
  return rows;
}

/// Specks smaller than 256 pixels of 8 um are dropped, and all holes are filled.
TissueRule coarse_rule() {
  TissueRule rule;
  rule.least_um2 = 16384.0;
  rule.filled_um2 = std::numeric_limits<double>::infinity();
  return rule;
}

Mask found_in(const PixelImage& image, const std::optional<double>& mpp, double scale,
              const TissueRule& rule = coarse_rule()) {
  const auto factor = static_cast<std::int64_t>(scale);
  return find_tissue(image.view(), {scale, scale}, {image.image.width * factor, image.image.height * factor}, mpp,
                     rule);
}

/// A ring that is closed by a corner, with a speck inside; a speck; four blocks that hang together by a corner.
const std::vector<std::string> picture = {
    "............",  //
    ".####.......",  //
    ".#...#...#..",  //
    ".#.#.#......",  //
    ".#...#..###.",  //
    ".#####.#....",  //
};
const std::vector<std::string> filled = {
    "............",  //
    ".####.......",  //
    ".#####......",  //
    ".#####......",  //
    ".#####..###.",  //
    ".#####.#....",  //
};

}  // namespace

TEST_CASE("Saturation is the definition for every largest and smallest sample") {
  PixelImage image({256, 256}, rgb_format);
  for (int most = 0; most < 256; ++most) {
    for (int least = 0; least < 256; ++least) {
      image.set(least, most, (most + least) % 3, static_cast<std::uint8_t>(most));
      image.set(least, most, (most + least + 1) % 3, static_cast<std::uint8_t>(std::min(least, most)));
      image.set(least, most, (most + least + 2) % 3, static_cast<std::uint8_t>((std::min(least, most) + most) / 2));
    }
  }
  for (const std::int64_t unit : vector_units()) {
    const ForcedTarget forced(unit);
    PixelImage made(image.image, luminance_format);
    saturation(made.view(), image.view());
    CHECK(made.bytes == each_pixel(image, [&](std::int64_t x, std::int64_t y) {
                          return plain_saturation(image.at(x, y, 0), image.at(x, y, 1), image.at(x, y, 2));
                        }).bytes);
  }
}

TEST_CASE("Saturation is the definition, whole and in rectangles") {
  check_rectangles(rgb_format, luminance_format, {}, saturation, [](const PixelImage& image) {
    return each_pixel(image, [&](std::int64_t x, std::int64_t y) {
      return plain_saturation(image.at(x, y, 0), image.at(x, y, 1), image.at(x, y, 2));
    });
  });
}

TEST_CASE("The median is the definition, whole and in rectangles (long)") {
  check_rectangles(luminance_format, luminance_format, around, median3x3, plain_median);
}

TEST_CASE("The median of nine is right for every order of zeros and ones") {
  PixelImage image({3 * 512, 3}, luminance_format);
  for (int bits = 0; bits < 512; ++bits) {
    for (int i = 0; i < 9; ++i) image.set(3 * bits + i % 3, i / 3, 0, static_cast<std::uint8_t>((bits >> i) & 1));
  }
  PixelImage made(image.image, luminance_format);
  median3x3(made.view(), image.view());
  CHECK(made.bytes == plain_median(image).bytes);
}

TEST_CASE("Otsu's threshold is the definition") {
  std::mt19937_64 random(17);
  for (int i = 0; i < 100; ++i) {
    std::array<std::uint64_t, 256> histogram{};
    for (std::uint64_t& count : histogram) count = random() % 3 == 0 ? random() % 100000 : 0;
    if (i % 4 == 0) std::fill(histogram.begin() + 60, histogram.end() - 20, std::uint64_t{0});
    CHECK(otsu_threshold(histogram) == plain_otsu(histogram));
  }
}

TEST_CASE("Of equal thresholds the lowest is taken, and sums may be large") {
  std::array<std::uint64_t, 256> histogram{};
  CHECK(otsu_threshold(histogram) == 0);
  histogram[200] = 5;
  CHECK(otsu_threshold(histogram) == 0);
  histogram[30] = 7;
  CHECK(otsu_threshold(histogram) == 30);
  // Symmetric: thresholds 10 and 20 are equal.
  histogram = {};
  histogram[10] = histogram[20] = histogram[30] = 1000;
  CHECK(otsu_threshold(histogram) == 10);
  histogram = {};
  histogram[0] = histogram[255] = std::uint64_t{1} << 26;
  CHECK(otsu_threshold(histogram) == 0);
  // One pixel more or less in 2^26 decides.
  histogram = {};
  histogram[10] = histogram[20] = histogram[30] = std::uint64_t{1} << 24;
  CHECK(otsu_threshold(histogram) == 10);
  ++histogram[10];
  const int fewer_above = otsu_threshold(histogram);
  --histogram[10];
  ++histogram[30];
  CHECK(otsu_threshold(histogram) != fewer_above);
}

TEST_CASE("Components are what flooding finds") {
  std::mt19937_64 random(23);
  for (int i = 0; i < 200; ++i) {
    Mask mask = empty_mask(random_size(random, 30), {}, {});
    for (std::uint8_t& pixel : mask.pixels)
      pixel = (random() >> 20) % 100 < 45U + static_cast<unsigned>(i) % 3 * 10 ? 1 : 0;
    const auto value = static_cast<std::uint8_t>(i % 2);
    const Connectivity connectivity = i % 4 < 2 ? Connectivity::four : Connectivity::eight;
    const std::vector<int> labels = flooded(mask, value, connectivity);
    const Components components = find_components(mask, value, connectivity);
    std::vector<int> found(labels.size(), -1);
    std::vector<Component> counted(components.list.size());
    for (const MaskRun& run : components.runs) {
      for (std::int64_t x = run.begin; x < run.end; ++x) {
        found[static_cast<std::size_t>(run.y * mask.size.width + x)] = static_cast<int>(run.component);
        Component& component = counted[run.component];
        ++component.pixels;
        component.at_border |= x == 0 || run.y == 0 || x == mask.size.width - 1 || run.y == mask.size.height - 1;
      }
    }
    CHECK(found == labels);
    for (std::size_t j = 0; j < counted.size(); ++j) {
      CHECK(counted[j].pixels == components.list[j].pixels);
      CHECK(counted[j].at_border == components.list[j].at_border);
    }
    // The same components by two scans, of which those of an odd area inside the mask, and of three pixels, flip.
    const auto chosen = [](const Component& component) {
      return component.pixels == 3 || (component.pixels % 2 == 1 && !component.at_border);
    };
    Mask expected = mask;
    for (const MaskRun& run : components.runs) {
      if (!chosen(components.list[run.component])) continue;
      const auto row = expected.row(run.y);
      std::fill(row.begin() + run.begin, row.begin() + run.end, static_cast<std::uint8_t>(1 - value));
    }
    flip_components(mask, value, connectivity, chosen);
    CHECK(mask.pixels == expected.pixels);
    CHECK(PackedMask(mask).unpack().pixels == mask.pixels);
  }
}

TEST_CASE("Holes are filled, and specks dropped by their area") {
  // A block of 10 x 10 pixels of 8 um is 6,400 square micrometres: the corner of four blocks stays, the single one
  // goes.
  const PixelImage image = drawn(picture, 10);
  CHECK(summary(found_in(image, 0.25, 32.0), 10) == filled);
  // Twice the pixel size: nothing is too small.
  std::vector<std::string> with_speck = filled;
  with_speck[2][9] = '#';
  CHECK(summary(found_in(image, 0.5, 32.0), 10) == with_speck);
  CHECK(summary(found_in(image, 0.25, 64.0), 10) == with_speck);
  // A tenth: all of it is.
  CHECK(tissue_share(found_in(image, 0.025, 32.0)) == 0.0);
}

TEST_CASE("Without a pixel size no speck is dropped, and all holes are filled") {
  const PixelImage image = drawn(picture, 10);
  std::vector<std::string> with_speck = filled;
  with_speck[2][9] = '#';
  CHECK(summary(found_in(image, std::nullopt, 32.0), 10) == with_speck);
}

TEST_CASE("What is dark is no tissue") {
  PixelImage image({60, 60}, rgb_format);
  for (std::int64_t y = 0; y < 60; ++y) {
    for (std::int64_t x = 0; x < 60; ++x) {
      const bool border = x < 20;
      for (int c = 0; c < 3; ++c) {
        image.set(x, y, c, static_cast<std::uint8_t>(border ? (c == 0 ? 39 : 0) : y < 30 ? 240 : c == 1 ? 90 : 180));
      }
    }
  }
  const Mask mask = found_in(image, 8.0, 1.0);
  for (std::int64_t y = 0; y < 60; ++y) CHECK(mask.row(y)[5] == 0);
  CHECK(mask.row(50)[40] == 1);
  CHECK(mask.row(5)[40] == 0);
}

TEST_CASE("What a black border has darkened is no tissue") {
  // Column 20 is mixed with the border: glass by 1/6, which is saturated as tissue is.
  const auto bordered = [](bool black) {
    PixelImage image({60, 60}, rgb_format);
    for (std::int64_t y = 0; y < 60; ++y) {
      for (std::int64_t x = 0; x < 60; ++x) {
        for (int c = 0; c < 3; ++c) {
          int value = y < 30 ? 240 : c == 1 ? 90 : 180;
          if (x < 20) value = black ? 2 : 240;
          if (x == 20) value = !black ? 240 : c == 0 ? 45 : 36;
          image.set(x, y, c, static_cast<std::uint8_t>(value));
        }
      }
    }
    return image;
  };
  CHECK(plain_saturation(45, 36, 36) > 50);
  CHECK(found_in(bordered(true), 8.0, 1.0).pixels == found_in(bordered(false), 8.0, 1.0).pixels);
  // A black gap within tissue is no hole that is filled.
  PixelImage gap = bordered(false);
  for (std::int64_t y = 40; y < 44; ++y) {
    for (std::int64_t x = 40; x < 44; ++x) {
      for (int c = 0; c < 3; ++c) gap.set(x, y, c, std::uint8_t{1});
    }
  }
  const Mask mask = found_in(gap, 8.0, 1.0);
  CHECK(mask.row(42)[42] == 0);
  CHECK(mask.row(42)[44] == 0);
  CHECK(mask.row(42)[45] == 1);
}

TEST_CASE("Holes are filled up to the area of the rule") {
  TissueRule rule = coarse_rule();
  std::vector<std::string> ring = filled;
  for (const std::size_t y : {2U, 3U, 4U}) ring[y].replace(2, 3, "...");
  // The speck inside is dropped, and belongs to the hole of nine blocks then: 57,600 square micrometres less the
  // corners that the median takes.
  for (const auto& [area, expected] : {std::pair(0.0, ring), {50000.0, ring}, {70000.0, filled}}) {
    rule.filled_um2 = area;
    CHECK(summary(found_in(drawn(picture, 10), 0.25, 32.0, rule), 10) == expected);
  }
  // Without a pixel size there are no areas: all holes or none.
  rule.filled_um2 = 1.0;
  CHECK(summary(found_in(drawn(picture, 10), std::nullopt, 32.0, rule), 10)[3][3] == '#');
  rule.filled_um2 = 0.0;
  CHECK(summary(found_in(drawn(picture, 10), std::nullopt, 32.0, rule), 10)[2][2] == '.');
}

TEST_CASE("A threshold that is given stands in place of the one that is found") {
  PixelImage image({40, 20}, rgb_format);
  // Saturations of 0, 25, 127 and 229.
  const std::array<std::uint8_t, 4> least = {200, 180, 100, 20};
  for (std::int64_t y = 0; y < 20; ++y) {
    for (std::int64_t x = 0; x < 40; ++x) {
      for (int c = 0; c < 3; ++c)
        image.set(x, y, c, c == 0 ? least[static_cast<std::size_t>(x / 10)] : std::uint8_t{200});
    }
  }
  TissueRule rule;
  for (const auto& [threshold, share] : {std::pair(10, 0.75), {100, 0.5}, {200, 0.25}, {254, 0.0}}) {
    rule.threshold = threshold;
    CHECK(tissue_share(found_in(image, std::nullopt, 8.0, rule)) == doctest::Approx(share));
  }
}

TEST_CASE("A threshold that is given changes nothing else of its method") {
  // A column of 20 is a tenth of the tissue beside it, which has 204: mostly glass.
  PixelImage image({40, 20}, rgb_format);
  for (std::int64_t y = 0; y < 20; ++y) {
    for (std::int64_t x = 0; x < 40; ++x) {
      for (int c = 0; c < 3; ++c) {
        const int least = x < 20 ? 200 : x == 20 ? 184 : 40;
        image.set(x, y, c, static_cast<std::uint8_t>(c == 1 ? least : 200));
      }
    }
  }
  TissueRule rule;
  const Mask found = found_in(image, std::nullopt, 8.0, rule);
  rule.threshold = least_above_glass;
  CHECK(found_in(image, std::nullopt, 8.0, rule).pixels == found.pixels);
  CHECK(tissue_share(found) == doctest::Approx(19.0 / 40.0));
  for (const TissueMethod method : {TissueMethod::otsu, TissueMethod::fixed}) {
    rule.method = method;
    CHECK(tissue_share(found_in(image, std::nullopt, 8.0, rule)) == doctest::Approx(20.0 / 40.0));
  }
}

TEST_CASE("Areas at the limit stay") {
  // Without its corners, which the median takes: 16 x 16 - 4 pixels.
  const PixelImage image = drawn({"...", ".#.", "..."}, 16);
  TissueRule rule = coarse_rule();
  rule.least_um2 = 252.0;
  CHECK(tissue_share(found_in(image, 1.0, 1.0, rule)) > 0.0);
  rule.least_um2 = 252.1;
  CHECK(tissue_share(found_in(image, 1.0, 1.0, rule)) == 0.0);
}

TEST_CASE("White, grey and single-coloured slides") {
  PixelImage image({50, 40}, rgb_format);
  std::fill(image.bytes.begin(), image.bytes.end(), std::byte{255});
  CHECK(tissue_share(found_in(image, 0.25, 32.0)) == 0.0);
  for (std::size_t i = 0; i < image.bytes.size(); ++i) image.bytes[i] = static_cast<std::byte>(i / 3 % 256);
  CHECK(tissue_share(found_in(image, 0.25, 32.0)) == 0.0);
  for (std::size_t i = 0; i < image.bytes.size(); ++i) image.bytes[i] = static_cast<std::byte>(i % 3 == 1 ? 100 : 200);
  CHECK(tissue_share(found_in(image, 0.25, 32.0)) == 1.0);
  PixelImage pixel({1, 1}, rgb_format);
  CHECK(tissue_share(found_in(pixel, 0.25, 32.0)) == 0.0);
}
