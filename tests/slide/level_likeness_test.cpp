// Which smaller pages show what the slide shows: pages with a label in a corner don't, whatever made the others do.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/test_images.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

std::uint8_t to_sample(double value) { return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L)); }

/// A grey picture of what `value` says of a pixel.
template <class Value>
Picture grey_picture(int width, int height, const Value& value) {
  Picture picture{width, height, 1, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height))};
  std::uint8_t* to = picture.data.data();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) *to++ = to_sample(value(x, y));
  }
  return picture;
}

int at(const Picture& picture, int x, int y) {
  return *picture.at(std::clamp(x, 0, picture.width - 1), std::clamp(y, 0, picture.height - 1));
}

Picture grey(const Picture& rgb) { return {rgb.width, rgb.height, 1, formula(rgb)}; }

TestDirectory as_level(const Picture& picture, const std::function<Bytes(const Picture&)>& encode = to_bytes,
                       int tile = 256) {
  const auto side = static_cast<std::uint32_t>(tile);
  TestDirectory directory = tiled_directory(static_cast<std::uint32_t>(picture.width),
                                            static_cast<std::uint32_t>(picture.height), side, side, picture.samples);
  for (int y = 0; y < picture.height; y += tile) {
    for (int x = 0; x < picture.width; x += tile) directory.tiles.push_back(encode(cut(picture, x, y, tile, tile)));
  }
  return directory;
}

// What programs make smaller levels by, and what they do to them.

Picture decimated(const Picture& picture, int by, int phase) {
  return grey_picture(picture.width / by, picture.height / by,
                      [&](int x, int y) { return at(picture, x * by + phase, y * by + phase); });
}

Picture displaced_by(const Picture& picture, int by_x, int by_y) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) { return at(picture, x + by_x, y + by_y); });
}

Picture displaced(const Picture& picture) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) {
    return (at(picture, x, y) + at(picture, x + 1, y) + at(picture, x, y + 1) + at(picture, x + 1, y + 1)) / 4.0;
  });
}

double mean_around(const Picture& picture, int x, int y) {
  double sum = 0.0;
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) sum += at(picture, x + dx, y + dy);
  }
  return sum / 25.0;
}

Picture blurred(const Picture& picture) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) { return mean_around(picture, x, y); });
}

Picture sharpened(const Picture& picture) {
  return grey_picture(picture.width, picture.height,
                      [&](int x, int y) { return 2.0 * at(picture, x, y) - mean_around(picture, x, y); });
}

Picture brighter(const Picture& picture, int by) {
  return grey_picture(picture.width, picture.height, [&](int x, int y) { return at(picture, x, y) + by; });
}

Picture coarse_jpeg(const Picture& picture) {
  return decode_jpeg_grey(encode_jpeg(picture, {.coding = JpegOptions::Coding::grey, .quality = 30}));
}

/// By name, each made when it is asked for. `picture` must outlive them.
std::vector<std::pair<std::string, std::function<Picture()>>> sound_levels(const Picture& picture, int by) {
  const auto means = [&picture, by] { return reduced(picture, by); };
  const auto nearest = [&picture, by] { return decimated(picture, by, 0); };
  return {{"means", means},
          {"the nearest pixel", nearest},
          {"the middle pixel", [&picture, by] { return decimated(picture, by, by / 2); }},
          {"half a pixel away", [means] { return displaced(means()); }},
          {"the nearest pixel, half a pixel away", [nearest] { return displaced(nearest()); }},
          {"blurred", [means] { return blurred(means()); }},
          {"sharpened", [means] { return sharpened(means()); }},
          {"brighter", [means] { return brighter(means(), 6); }},
          {"darker", [means] { return brighter(means(), -6); }},
          {"JPEG of quality 30", [means] { return coarse_jpeg(means()); }},
          {"all at once", [nearest] { return coarse_jpeg(brighter(sharpened(displaced(nearest())), 4)); }}};
}

/// White paper with lines of dark strokes, of an area's part `share`, over the picture in one of its corners.
Picture with_label(Picture picture, double share, bool at_right, bool at_bottom) {
  const int width = static_cast<int>(std::ceil(picture.width * std::sqrt(share)));
  const int height = static_cast<int>(std::ceil(picture.height * std::sqrt(share)));
  const int left = at_right ? picture.width - width : 0;
  const int top = at_bottom ? picture.height - height : 0;
  const int line = std::max(6, height / 5);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool is_stroke = y % line > line / 3 && x % std::max(4, line / 2) < std::max(1, line / 8);
      const auto pixel = static_cast<std::size_t>((top + y) * picture.width + left + x);
      if (picture.samples == 1) {
        picture.data[pixel] = is_stroke ? 20 : 250;
        continue;
      }
      const std::uint8_t ink[] = {20, 20, 120};
      const std::uint8_t paper[] = {255, 250, 200};
      std::copy_n(is_stroke ? ink : paper, 3, picture.data.begin() + static_cast<std::ptrdiff_t>(3 * pixel));
    }
  }
  return picture;
}

Picture sharp_edges() {
  return grey_picture(2048, 1536, [](int x, int y) { return (x / 37 + y / 53) % 2 == 0 ? 40 : 230; });
}

/// Patches of tissue on glass, with structures of several sizes.
Picture tissue() {
  return grey_picture(2048, 1536, [](int x, int y) {
    if (std::sin(x / 170.0) + std::cos(y / 130.0) <= 0.0) return 240.0 + (x * 7 + y * 13) % 5;
    return 150.0 + 30.0 * std::sin(x / 23.0) * std::cos(y / 19.0) + 12.0 * std::sin(x / 5.0 + y / 7.0) +
           (x * 31 + y * 17) % 13;
  });
}

/// A number below a bound that says nothing of those beside it.
int grain(int x, int y, std::uint32_t seed, std::uint32_t bound) {
  std::uint32_t value = static_cast<std::uint32_t>(x) * 73856093U ^ static_cast<std::uint32_t>(y) * 19349663U;
  value ^= seed * 83492791U;
  value ^= value >> 13;
  value *= 0x5bd1e995U;
  value ^= value >> 15;
  return static_cast<int>(value % bound);
}

/// Tissue whose pixels differ much more than its places do.
Picture busy_tissue(std::uint32_t seed) {
  return grey_picture(2048, 1536, [seed](int x, int y) { return 90 + grain(x, y, seed, 121); });
}

/// Tissue in the middle of glass with grain.
Picture grainy_glass() {
  return grey_picture(2048, 1536, [](int x, int y) {
    if (std::abs(x - 1024) >= 500 || std::abs(y - 768) >= 400) return 232.0 + grain(x, y, 1, 16);
    return 150.0 + 30.0 * std::sin(x / 23.0) * std::cos(y / 19.0) + 12.0 * std::sin(x / 5.0 + y / 7.0) +
           (x * 31 + y * 17) % 13;
  });
}

/// Dark is red, and bright is white.
Picture in_red(const Picture& picture) {
  Picture coloured{picture.width, picture.height, 3, {}};
  for (const std::uint8_t value : picture.data) {
    const int dark = std::max(0, 240 - value);
    for (const int sample : {value + dark / 2, value - dark / 4, int{value}})
      coloured.data.push_back(to_sample(sample));
  }
  return coloured;
}

/// Purple tissue on glass: red goes with luminance.
Picture stained(const Picture& picture) {
  Picture coloured{picture.width, picture.height, 3, {}};
  for (const std::uint8_t value : picture.data) {
    const double pale = (value - 100) / 110.0;
    const std::array<double, 3> glass = {243.0, 241.0, 244.0};
    const std::array<double, 3> stain = {150.0 + 70.0 * pale, 70.0 + 90.0 * pale, 140.0 + 50.0 * pale};
    for (const double sample : value >= 230 ? glass : stain) coloured.data.push_back(to_sample(sample));
  }
  return coloured;
}

/// Three samples of a pixel.
using Samples = std::array<double, 3>;

Picture recoloured(Picture picture, const std::function<Samples(const Samples&)>& change) {
  for (std::size_t i = 0; i < picture.data.size(); i += 3) {
    std::uint8_t* pixel = picture.data.data() + i;
    const Samples changed =
        change({static_cast<double>(pixel[0]), static_cast<double>(pixel[1]), static_cast<double>(pixel[2])});
    for (std::size_t sample = 0; sample < 3; ++sample) pixel[sample] = to_sample(changed[sample]);
  }
  return picture;
}

/// A slide of 1024 x 1024 pixels, with a stained piece on a hundredth of it.
Picture piece_on_glass(const Samples& stain) {
  constexpr int side = 1024;
  constexpr int piece = 103;
  constexpr int begin = 300;
  const Samples glass = {241.0, 240.0, 238.0};
  Picture picture{side, side, 3, {}};
  picture.data.reserve(std::size_t{3} * side * side);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const bool is_tissue = x >= begin && x < begin + piece && y >= begin && y < begin + piece;
      const double density = is_tissue ? 0.7 + 0.3 * std::sin(x / 9.0) * std::cos(y / 7.0) : 0.0;
      for (std::size_t i = 0; i < 3; ++i) {
        picture.data.push_back(to_sample(glass[i] + density * (stain[i] - glass[i]) + grain(x, y, 1, 4)));
      }
    }
  }
  return picture;
}

/// As if nothing had been written there.
Picture black_tile(Picture picture, int at, int side) {
  for (int y = at; y < at + side; ++y) {
    const auto from = static_cast<std::ptrdiff_t>(3 * (y * picture.width + at));
    std::fill_n(picture.data.begin() + from, 3 * side, std::uint8_t{0});
  }
  return picture;
}

double grey_of(const Samples& rgb) { return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]; }

Samples ycbcr_of(const Samples& rgb) {
  const double luminance = grey_of(rgb);
  return {luminance, 128.0 + (rgb[2] - luminance) / 1.772, 128.0 + (rgb[0] - luminance) / 1.402};
}

std::map<std::string, Picture> made_up_pictures() {
  return {{"tissue", tissue()},
          {"blank glass", grey_picture(2048, 1536, [](int x, int y) { return 240 + (x * 7 + y * 13) % 5; })},
          {"one colour", grey_picture(2048, 1536, [](int, int) { return 243; })}};
}

class LevelsOf {
 public:
  explicit LevelsOf(const Picture& picture) { tiff_.directories = {as_level(picture), {}}; }

  std::shared_ptr<const Slide> open(const Picture& level) {
    tiff_.directories[1] = as_level(level);
    return Slide::open(folder_.write("slide.tif", tiff_.bytes()));
  }

 private:
  TemporaryFolder folder_;
  TestTiff tiff_;
};

void check_sound_level(LevelsOf& slide, const Picture& level) {
  const auto opened = slide.open(level);
  CHECK(opened->info().levels.size() == 2);
  CHECK(opened->info().warnings.empty());
}

void check_no_level(LevelsOf& slide, const Picture& level) {
  const auto opened = slide.open(level);
  CHECK(opened->info().levels.size() == 1);
  REQUIRE(opened->info().warnings.size() == 1);
  CHECK(opened->info().warnings[0].ends_with("isn't like the slide: it is no level"));
}

/// With a sanitizer each level takes ten times as long: of all levels every third one is looked at, of corners two.
#ifdef SLIDESTREAM_SANITIZED
constexpr int each = 3;
#else
constexpr int each = 1;
#endif

void check_sound_levels(const Picture& picture, std::initializer_list<int> factors) {
  LevelsOf slide(picture);
  int number = 0;
  for (const int by : factors) {
    for (const auto& level : sound_levels(picture, by)) {
      if (number++ % each != 0) continue;
      INFO("by ", by, ", ", level.first);
      check_sound_level(slide, level.second());
    }
  }
}

void check_labels(const Picture& picture, std::initializer_list<int> factors) {
  LevelsOf slide(picture);
  for (const int by : factors) {
    for (int corner = 0; corner < 4; corner += each) {
      INFO("by ", by, ", corner ", corner);
      check_no_level(slide, with_label(reduced(picture, by), 0.08, corner % 2 == 1, corner / 2 == 1));
    }
  }
}

}  // namespace

TEST_CASE("a smaller level is one, however it was made (long)") {
  for (const auto& picture : made_up_pictures()) {
    CAPTURE(picture.first);
    check_sound_levels(picture.second, {4, 16, 32});
  }
  check_sound_levels(tissue(), {2});
  check_sound_levels(grey(make_stained_picture(2048, 1536, 5)), {2, 4});
}

TEST_CASE("a smaller level of sharp edges is one, also where its pixels are as large as they are far apart (long)") {
  const Picture picture = sharp_edges();
  check_sound_levels(picture, {2, 4});
  LevelsOf slide(picture);
  for (const int by : {16, 32}) {
    CAPTURE(by);
    const Picture means = reduced(picture, by);
    for (const Picture& level : {means, sharpened(means), brighter(means, 6), coarse_jpeg(means)}) {
      check_sound_level(slide, level);
    }
  }
}

TEST_CASE("a smaller level that lies some of its pixels beside the slide is one (long)") {
  const Picture picture = sharp_edges();
  LevelsOf slide(picture);
  for (const int by : {0, 2, 4}) {
    CAPTURE(by);
    check_sound_level(slide, displaced_by(reduced(picture, 2), by, by * 3 / 4));
  }
}

TEST_CASE("a smaller level with another white is one: the grain of glass is no label (long)") {
  const Picture picture = grainy_glass();
  LevelsOf slide(picture);
  for (const int by : {2, 4, 16}) {
    CAPTURE(by);
    check_sound_level(slide, brighter(decimated(picture, by, 0), -36));
    check_sound_level(slide, brighter(decimated(picture, by, by / 2), -36));
  }
  check_labels(picture, {2, 4, 16});
}

TEST_CASE("a smaller level of single pixels is one, also where pixels differ more than places do (long)") {
  const Picture picture = busy_tissue(1);
  LevelsOf slide(picture);
  for (const int by : {8, 16, 32}) {
    CAPTURE(by);
    const Picture nearest = decimated(picture, by, 0);
    for (const Picture& level : {nearest, decimated(picture, by, by / 2), decimated(picture, by, by - 1),
                                 sharpened(nearest), brighter(nearest, 6), displaced_by(nearest, 1, 1)}) {
      check_sound_level(slide, level);
    }
    if (by == 8) continue;
    // The same grain, of another slide.
    check_no_level(slide, decimated(busy_tissue(2), by, 0));
  }
  check_no_level(slide, with_label(decimated(picture, 16, 0), 0.08, true, true));
}

TEST_CASE("a smaller image with a label in a corner is no level (long)") {
  for (const auto& picture : made_up_pictures()) {
    CAPTURE(picture.first);
    check_labels(picture.second, {2, 4, 16});
  }
  check_labels(sharp_edges(), {2, 4});
}

TEST_CASE("in colour, too, and a label as JPEG has it (long)") {
  const Picture picture = tissue();
  const Picture coloured = in_red(picture);
  check_labels(coloured, {2, 4, 16});
  LevelsOf of_colour(coloured);
  LevelsOf of_grey(picture);
  for (const int by : {2, 4, 16}) {
    CAPTURE(by);
    check_sound_level(of_colour, reduced(coloured, by));
    check_no_level(of_grey, coarse_jpeg(with_label(reduced(picture, by), 0.08, true, true)));
  }
}

TEST_CASE("an image in other colours than the slide's is no level (long)") {
  const Picture picture = in_red(tissue());
  LevelsOf slide(picture);
  LevelsOf of_ycbcr(recoloured(picture, ycbcr_of));
  LevelsOf of_grey(grey(picture));
  for (const int by : {2, 4, 16}) {
    CAPTURE(by);
    const Picture level = reduced(picture, by);
    std::array<std::size_t, 3> order = {0, 1, 2};
    while (std::ranges::next_permutation(order).found) {
      INFO("samples ", order[0], order[1], order[2]);
      check_no_level(slide, recoloured(level, [&order](const Samples& from) {
                       return Samples{from[order[0]], from[order[1]], from[order[2]]};
                     }));
    }
    check_no_level(slide, recoloured(level, ycbcr_of));
    check_no_level(slide, grey(level));
    check_no_level(slide, recoloured(level, [](const Samples& from) {
                     const double value = grey_of(from);
                     return Samples{value, value, value};
                   }));
    check_no_level(of_ycbcr, level);
    check_no_level(of_grey, level);
  }
}

TEST_CASE("a level with its colours in another order is no level, however little of a slide is tissue") {
  // A hundredth of the slide, on glass with grain.
  for (const Samples& stain : {Samples{226.0, 140.0, 190.0}, Samples{150.0, 110.0, 70.0}}) {
    CAPTURE(stain[0]);
    const Picture picture = piece_on_glass(stain);
    LevelsOf slide(picture);
    const Picture level = reduced(picture, 4);
    check_sound_level(slide, level);
    check_sound_level(slide, recoloured(level, [](const Samples& from) {
                        return Samples{from[0] - 8.0, from[1], from[2] + 5.0};
                      }));
    std::array<std::size_t, 3> order = {0, 1, 2};
    while (std::ranges::next_permutation(order).found) {
      INFO("samples ", order[0], order[1], order[2]);
      check_no_level(slide, recoloured(level, [&order](const Samples& from) {
                       return Samples{from[order[0]], from[order[1]], from[order[2]]};
                     }));
    }
  }
}

TEST_CASE("a level whose RGB was made YCbCr over and over is no level, and one in fewer or darker tones is") {
  const Picture picture = piece_on_glass({150.0, 90.0, 170.0});
  LevelsOf slide(picture);
  const Picture level = reduced(picture, 4);
  Picture turned = level;
  for (int times = 1; times <= 4; ++times) {
    CAPTURE(times);
    turned = recoloured(turned, ycbcr_of);
    check_no_level(slide, turned);
  }
  check_sound_level(slide, recoloured(level, [](const Samples& from) {
                      return Samples{0.6 * from[0], 0.6 * from[1], 0.6 * from[2]};
                    }));
  check_sound_level(slide, recoloured(level, [](const Samples& from) {
                      return Samples{130.0 + 0.5 * from[0], 130.0 + 0.5 * from[1], 130.0 + 0.5 * from[2]};
                    }));
}

TEST_CASE("a level that is black where the slide isn't gets a line") {
  const Picture picture = piece_on_glass({226.0, 140.0, 190.0});
  LevelsOf slide(picture);
  const Picture level = reduced(picture, 2);
  CHECK(slide.open(black_tile(level, 256, 256))->info().warnings ==
        std::vector<std::string>{"level 1 is black where level 0 isn't, at 4 of 4 black places that were looked at: "
                                 "pixels of it may be lost"});
  // A gap of the scan.
  const Picture with_gap = black_tile(picture, 512, 512);
  LevelsOf of_gap(with_gap);
  check_sound_level(of_gap, reduced(with_gap, 2));
}

TEST_CASE("a level whose RGB is read as YCbCr is no level, nor is one without red, green or blue (long)") {
  const Picture picture = stained(tissue());
  LevelsOf slide(picture);
  for (const int by : {2, 4}) {
    CAPTURE(by);
    const Picture level = reduced(picture, by);
    check_sound_level(slide, level);
    for (std::size_t sample = 0; sample < 3; ++sample) {
      CAPTURE(sample);
      check_no_level(slide, recoloured(level, [sample](Samples from) {
                       from[sample] = 0.0;
                       return from;
                     }));
    }
    // Tiles that don't say what their components are: the tag does.
    const auto untransformed = [](const Picture& tile) {
      return encode_jpeg(tile, {.coding = JpegOptions::Coding::unknown, .quality = 95});
    };
    TestTiff tiff;
    tiff.directories = {as_level(picture), as_level(level, untransformed).set_short(259, 7)};
    const TemporaryFolder folder;
    for (const auto& [photometric, levels] : {std::pair(2U, 2U), std::pair(6U, 1U)}) {
      tiff.directories[1].set_short(262, photometric);
      CHECK(Slide::open(folder.write("slide.tif", tiff.bytes()))->info().levels.size() == levels);
    }
  }
}

TEST_CASE("a smaller level that is paler, tinted or of another gamma than the slide is one") {
  const Picture picture = in_red(tissue());
  LevelsOf slide(picture);
  for (const int by : {2, 4, 16}) {
    CAPTURE(by);
    const Picture level = reduced(picture, by);
    check_sound_level(slide, recoloured(level, [](const Samples& from) {
                        const double value = grey_of(from);
                        Samples paler{};
                        for (std::size_t i = 0; i < 3; ++i) paler[i] = value + 0.6 * (from[i] - value);
                        return paler;
                      }));
    check_sound_level(slide, recoloured(level, [](const Samples& from) {
                        return Samples{from[0] - 20.0, from[1], from[2] - 10.0};
                      }));
    for (const double gamma : {1.0 / 2.2, 2.2}) {
      CAPTURE(gamma);
      check_sound_level(slide, recoloured(level, [gamma](const Samples& from) {
                          Samples changed{};
                          for (std::size_t i = 0; i < 3; ++i) changed[i] = 255.0 * std::pow(from[i] / 255.0, gamma);
                          return changed;
                        }));
    }
  }
}

TEST_CASE("a tile that isn't there yet isn't compared (long)") {
  const Picture picture = tissue();
  const TemporaryFolder folder;
  for (const std::size_t place : {0U, 1U}) {
    for (const bool is_missing : {true, false}) {
      if (place == 0 && !is_missing) continue;
      TestTiff tiff;
      tiff.directories = {as_level(picture), as_level(reduced(picture, 2))};
      Bytes& tile = tiff.directories[place].tiles[5];
      if (is_missing) {
        tile.clear();
      } else {
        std::ranges::fill(tile, std::byte{0});
      }
      CAPTURE(place);
      CAPTURE(is_missing);
      CHECK(Slide::open(folder.write("slide.tif", tiff.bytes()))->info().levels.size() == 2);
    }
  }
}

TEST_CASE("a smaller image that shows most where the slide has no tiles is no level") {
  const TemporaryFolder folder;
  const auto levels_of = [&](const Picture& picture, const Picture& level, const auto& is_missing, int tile = 256) {
    TestTiff tiff;
    tiff.directories = {as_level(picture, to_bytes, tile), as_level(level)};
    std::vector<Bytes>& tiles = tiff.directories[0].tiles;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      if (is_missing(i)) tiles[i].clear();
    }
    return Slide::open(folder.write("slide.tif", tiff.bytes()))->info().levels.size();
  };
  const Picture glass = grey_picture(2048, 1536, [](int, int) { return 243; });
  const Picture label = with_label(reduced(glass, 4), 0.2, true, true);
  CHECK(levels_of(glass, label, [](std::size_t) { return true; }) == 1);
  CHECK(levels_of(glass, label, [](std::size_t i) { return i != 0; }) == 1);
  // Scanners may leave out what is blank.
  const Picture half =
      grey_picture(2048, 1536, [all = tissue()](int x, int y) { return x < 1024 ? at(all, x, y) : 255; });
  constexpr std::size_t columns = 8;
  const auto at_right = [](std::size_t i) { return i % columns >= columns / 2; };
  CHECK(levels_of(half, reduced(half, 4), at_right) == 2);
  // Or haven't written them yet.
  const Picture all = tissue();
  CHECK(levels_of(all, reduced(all, 4), at_right) == 2);
  CHECK(levels_of(all, reduced(all, 4), [](std::size_t i) { return i % columns < 2; }) == 2);
  // The slide's own picture where it has tiles, and text elsewhere.
  const auto text = [](int x, int y) { return y % 24 >= 8 && x % 16 == 0 ? 20 : 250; };
  const Picture left = reduced(all, 4);
  CHECK(levels_of(half, grey_picture(512, 384, [&](int x, int y) { return x < 256 ? at(left, x, y) : text(x, y); }),
                  at_right) == 1);
  // Thin text on paper as blank as the slide's other half, in tiles too large for places to be judged one by one.
  const Picture paper = grey_picture(512, 384, [](int x, int) { return x % (x < 256 ? 40 : 80) == 0 ? 20 : 243; });
  CHECK(levels_of(
            glass, paper, [](std::size_t i) { return i % 2 == 1; }, 1024) == 1);
}

TEST_CASE("real slides: levels stay however they were made, and labels are found (long)") {
  const auto root = test_data_root();
  if (!root) return report_skipped("no test data");
  for (const char* name : {"cmu-1-small-region.svs", "tcga-cr-7395.svs"}) {
    CAPTURE(name);
    const auto slide = Slide::open(*root / "data" / name);
    const Level& level = slide->info().levels[0];
    const Picture picture{static_cast<int>(level.width), static_cast<int>(level.height), 1, read_level(*slide)};
    check_sound_levels(picture, {4, 16, 32});
    check_labels(picture, {4, 16});
  }
}
