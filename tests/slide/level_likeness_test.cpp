// Which smaller pages show what the slide shows: pages with a label in a corner don't, whatever made the others do.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/level_pictures.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

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

/// Images with a level's samples in another order.
void check_other_orders(LevelsOf& slide, const Picture& level) {
  std::array<std::size_t, 3> order = {0, 1, 2};
  while (std::ranges::next_permutation(order).found) {
    INFO("samples ", order[0], order[1], order[2]);
    check_no_level(slide, recoloured(level, [&order](const Samples& from) {
                     return Samples{from[order[0]], from[order[1]], from[order[2]]};
                   }));
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
    check_other_orders(slide, level);
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
    check_other_orders(slide, level);
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
