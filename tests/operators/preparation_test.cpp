// What operators find out about a slide before its pixels pass by: its small level and its tissue.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operators/prepared_slides.hpp"
#include "operators/registry.hpp"
#include "operators/tissue/outlines.hpp"
#include "operators/tissue/preparation.hpp"
#include "operators/tissue/tissue.hpp"
#include "slide/test_images.hpp"
#include "support/pixel_images.hpp"

using namespace slidestream;
using namespace slidestream::operators;
using namespace slidestream::test;

namespace {

Bytes bytes_of_text(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

/// A picture with a part of one grey.
Picture blanked(Picture picture, const Rect& part, std::uint8_t grey) {
  for (std::int64_t y = part.y; y < part.bottom(); ++y) {
    auto* row = picture.data.data() + (y * picture.width + part.x) * 3;
    std::fill(row, row + part.width * 3, grey);
  }
  return picture;
}

const std::string found_on_level0 = "level 1 is blank where level 0 shows something: tissue is found on level 0";

}  // namespace

TEST_CASE("A pixel size that is given stands in place of the slide's own") {
  TestSlide slide(make_stained_picture(40, 40, 1), 0.0);
  CHECK_FALSE(slide.context().mpp.has_value());
  CHECK(Slide::open(slide.path, {.mpp = 0.125})->info().mpp.value() == 0.125);
}

TEST_CASE("The mask is the kernel's of the small level, found once") {
  const Picture picture = make_stained_picture(300, 200, 1);
  TestSlide slide(picture);
  const SlideContext context = slide.context();
  const auto mask = prepare_mask(context, {});
  CHECK(mask->size == Size{300, 200});
  CHECK(mask->pixels == mask_of(picture).pixels);
  CHECK(tissue_share(*mask) > 0.1);
  CHECK(tissue_share(*mask) < 0.9);
  CHECK(prepare_mask(context, {}) == mask);
  CHECK(Preparation::of(context, {}).image().view().data == Preparation::of(context, {}).image().view().data);
}

TEST_CASE("The level of 8 micrometres is looked at, in level 0 pixels of the slide") {
  const Picture fine = make_stained_picture(400, 240, 1);
  // Not quite the means of level 0.
  Picture coarse = reduced(fine, 4);
  for (std::size_t i = 0; i < coarse.data.size(); i += 3)
    coarse.data[i] = static_cast<std::uint8_t>(coarse.data[i] * 3 / 4);
  TestSlide slide({level_of(fine), level_of(coarse)}, 2.0);
  const auto mask = prepare_mask(slide.context(), {});
  CHECK(mask->size == Size{100, 60});
  CHECK(mask->scale.x == 4.0);
  CHECK(mask->level0 == Size{400, 240});
  CHECK(mask->pixels == mask_of(coarse).pixels);
}

TEST_CASE("The mask does not depend on the levels that a slide has (long)") {
  const Picture fine = make_stained_picture(640, 480, 1);
  // Levels that are exact means of level 0, as of a lossless pyramid.
  const Picture half = reduced(fine, 2);
  const Picture quarter = reduced(fine, 4);
  TestSlide alone({level_of(fine)}, 2.0);
  TestSlide two({level_of(fine), level_of(quarter)}, 2.0);
  TestSlide three({level_of(fine), level_of(half), level_of(quarter)}, 2.0);
  const auto mask = prepare_mask(alone.context(), {});
  CHECK(mask->size == Size{160, 120});
  for (TestSlide* slide : {&two, &three}) {
    const auto other = prepare_mask(slide->context(), {});
    REQUIRE(other->size == mask->size);
    CHECK(other->pixels == mask->pixels);
  }
}

TEST_CASE("Levels that are means of level 0 change samples of the small level by a rounding, at its edges too") {
  Picture fine = make_stained_picture(414, 525, 1);
  // Level 1's last row shows this one alone, and its last column two columns.
  std::fill(fine.data.end() - std::ptrdiff_t{414} * 3, fine.data.end(), std::uint8_t{60});
  TestSlide alone({level_of(fine)}, 1.0);
  TestSlide pyramid({level_of(fine), level_of(reduced(fine, 4))}, 1.0);
  std::vector<SmallImage> images;
  for (TestSlide* slide : {&alone, &pyramid}) {
    const SlideContext context = slide->context();
    const SmallLevel small = choose_small_level(context.slide.info(), context.mpp);
    CHECK(static_cast<int>(small.level) == (slide == &pyramid ? 1 : 0));
    images.push_back(read_small_level(context.slide, small, BadTilePolicy::fail));
  }
  REQUIRE(images[0].size == Size{52, 66});
  REQUIRE(images[1].size == images[0].size);
  int largest = 0;
  for (std::size_t i = 0; i < images[0].pixels.size(); ++i) {
    const int difference = std::to_integer<int>(images[0].pixels[i]) - std::to_integer<int>(images[1].pixels[i]);
    largest = std::max(largest, std::abs(difference));
  }
  CHECK(largest == 1);
}

TEST_CASE("A small level is made of area means while it is read, in bands of any height") {
  for (const auto& sides : {std::pair(131, 77), std::pair(64, 32), std::pair(40, 3)}) {
    const int width = sides.first;
    const int height = sides.second;
    const Picture picture = make_stained_picture(width, height, 3);
    TestSlide slide(picture);
    const SlideContext context = slide.context();
    for (const std::int64_t factor : {131072, 98304, 3 * 65536, 70000}) {
      SmallLevel small;
      small.factor = factor;
      small.size = {width * 65536 / factor, height * 65536 / factor};
      PixelImage expected(small.size, rgb_format);
      for (std::int64_t y = 0; y < small.size.height; ++y) {
        for (std::int64_t x = 0; x < small.size.width; ++x) {
          for (int c = 0; c < 3; ++c) {
            std::uint64_t sum = 0;
            // Of pixel u of an axis so much lies in [x f, (x + 1) f).
            const auto part = [&](std::int64_t u, std::int64_t at) {
              const std::int64_t from = std::max(u * 65536, at * factor);
              return static_cast<std::uint64_t>(
                  std::max<std::int64_t>(0, std::min((u + 1) * 65536, (at + 1) * factor) - from));
            };
            // No other pixel has a part in it.
            const auto first = [&](std::int64_t at) { return static_cast<int>(at * factor / 65536); };
            const auto end = [&](std::int64_t at, int side) { return std::min(side, first(at + 1) + 1); };
            for (int v = first(y); v < end(y, height); ++v) {
              for (int u = first(x); u < end(x, width); ++u) sum += part(u, x) * part(v, y) * picture.at(u, v)[c];
            }
            const auto area = static_cast<std::uint64_t>(factor) * static_cast<std::uint64_t>(factor);
            expected.set(x, y, c, static_cast<std::uint8_t>((sum + area / 2) / area));
          }
        }
      }
      for (const std::int64_t rows : {1, 5, 32, 100}) {
        const SmallImage image = read_small_level(context.slide, small, BadTilePolicy::fail, rows * width);
        INFO(width << " x " << height << ", by " << factor << ", " << rows << " rows");
        CHECK(image.size == small.size);
        CHECK(image.pixels == expected.bytes);
      }
    }
  }
}

TEST_CASE("A bad tile fails the slide with its number, or becomes white, and missing ones are white") {
  Picture picture = make_stained_picture(96, 64, 4);
  TestDirectory level = level_of(picture);
  level.tiles[1].resize(7);
  level.tiles[3].clear();
  TestSlide slide({level});
  const Config failing = running("tissue");
  const SlideContext context = slide.context();
  CHECK(error_of(*operator_of(failing), context)
            .starts_with(slide.path.string() + ": level 0 tile 1 (column 1, row 0): "));

  Config lenient = failing;
  lenient.decode.on_bad_tile = BadTilePolicy::white;
  for (const auto& [left, top] : {std::pair(32, 0), std::pair(0, 32)}) {
    for (int y = top; y < top + 32; ++y) {
      auto* row = picture.data.data() + (y * picture.width + left) * 3;
      std::fill(row, row + 32 * 3, std::uint8_t{255});
    }
  }
  const SlideContext again = slide.context();
  CHECK(prepare_mask(again, lenient)->pixels == mask_of(picture).pixels);
  CHECK(Preparation::of(again, lenient).image().pixels == to_bytes(picture));
}

TEST_CASE("Tiles of a smaller level that count as glass in the mask are counted, each once") {
  const Picture picture = make_stained_picture(640, 320, 4);
  TestDirectory level = level_of(reduced(picture, 4));
  REQUIRE(level.tiles.size() == 15);
  level.tiles[0].resize(7);
  level.tiles[1].clear();
  TestDirectory base = level_of(picture);
  Config lenient = running("tissue");
  lenient.decode.on_bad_tile = BadTilePolicy::white;
  {
    TestSlide slide({base, level}, 2.0);
    const SlideContext context = slide.context();
    REQUIRE(context.slide.info().levels.size() == 2);
    const auto mask = prepare_mask(context, lenient);
    const auto& tiles = Preparation::of(context, lenient).tiles_as_glass();
    REQUIRE(tiles.size() == 1);
    REQUIRE(tiles.contains(1));
    CHECK(tiles.at(1).lost == 1);
    CHECK(tiles.at(1).bad == 1);
    const auto doubts = doubts_of_tissue(*mask, context, "");
    REQUIRE_FALSE(doubts.empty());
    CHECK(doubts.back() == "tissue is found on level 1, where 1 bad tile counts as glass");
    // A band is a row of pixels, so that each tile is read many times.
    SmallLevel small = choose_small_level(context.slide.info(), 1.0);
    REQUIRE(static_cast<int>(small.level) == 1);
    REQUIRE(small.halvings == 1);
    CHECK(read_small_level(context.slide, small, BadTilePolicy::white, 40).bad_tiles == 1);
  }
  // What level 0 lacks, too, is blank. Of its 20 x 10 tiles these lie under the other's tile 1.
  for (std::size_t i = 0; i < 16; ++i) base.tiles.at(i / 4 * 20 + 4 + i % 4).clear();
  TestSlide sparse({base, level}, 2.0);
  const SlideContext context = sparse.context();
  REQUIRE(context.slide.info().levels.size() == 2);
  prepare_mask(context, lenient);
  CHECK(Preparation::of(context, lenient).tiles_as_glass().at(1).lost == 0);
}

TEST_CASE("A level that has lost a part of its picture is made from the larger one, with a line") {
  const Picture picture = make_stained_picture(256, 256, 1);
  const Picture coarse = reduced(picture, 4);
  TestSlide alone({level_of(picture)}, 2.0);
  const SlideContext sound = alone.context();
  const auto expected = prepare_mask(sound, {});
  REQUIRE(expected->size == Size{64, 64});
  struct Loss {
    Rect part;
    std::uint8_t grey;
  };
  // Tiles have 32 pixels.
  for (const Loss& loss : {Loss{{32, 0, 32, 64}, 255}, Loss{{32, 0, 32, 64}, 243}, Loss{{32, 0, 32, 64}, 0},
                           Loss{{32, 32, 32, 32}, 255}}) {
    CAPTURE(static_cast<int>(loss.grey));
    CAPTURE(loss.part.y);
    TestSlide slide({level_of(picture), level_of(blanked(coarse, loss.part, loss.grey))}, 2.0);
    const SlideContext context = slide.context();
    REQUIRE(context.slide.info().levels.size() == 2);
    const auto mask = prepare_mask(context, {});
    CHECK(mask->size == expected->size);
    CHECK(mask->scale.x == expected->scale.x);
    CHECK(mask->pixels == expected->pixels);
    Preparation& preparation = Preparation::of(context, {});
    CHECK(preparation.image().pixels == Preparation::of(sound, {}).image().pixels);
    CHECK(preparation.doubts() == std::vector{found_on_level0});
    // Its share is a doubt, too.
    REQUIRE(doubts_of_tissue(*mask, context, "").size() == 2);
    CHECK(doubts_of_tissue(*mask, context, "").back() == found_on_level0);
    // Tiles of the level that isn't looked at don't count.
    CHECK(preparation.tiles_as_glass().size() == 1);
    CHECK(preparation.tiles_as_glass().contains(0));
  }
}

TEST_CASE("A level stays that has the larger one's glass, one odd block, or tiles that are missing or bad") {
  const Picture picture = make_stained_picture(256, 256, 1);
  const Picture coarse = reduced(picture, 4);
  // The block is tissue.
  for (const Picture& shown : {coarse, blanked(coarse, {32, 16, 8, 8}, 255)}) {
    TestSlide slide({level_of(picture), level_of(shown)}, 2.0);
    const SlideContext context = slide.context();
    REQUIRE(context.slide.info().levels.size() == 2);
    CHECK(prepare_mask(context, {})->pixels == mask_of(shown).pixels);
    CHECK(Preparation::of(context, {}).doubts().empty());
    CHECK(Preparation::of(context, {}).tiles_as_glass().contains(1));
  }
  TestDirectory level = level_of(coarse);
  REQUIRE(level.tiles.size() == 4);
  level.tiles[1].clear();
  level.tiles[3].resize(7);
  Config lenient;
  lenient.decode.on_bad_tile = BadTilePolicy::white;
  TestSlide slide({level_of(picture), level}, 2.0);
  const SlideContext context = slide.context();
  REQUIRE(context.slide.info().levels.size() == 2);
  CHECK(prepare_mask(context, lenient)->pixels == mask_of(blanked(coarse, {32, 0, 32, 64}, 255)).pixels);
  const Preparation& preparation = Preparation::of(context, lenient);
  CHECK(preparation.doubts().empty());
  REQUIRE(preparation.tiles_as_glass().contains(1));
  CHECK(preparation.tiles_as_glass().at(1).lost == 1);
  CHECK(preparation.tiles_as_glass().at(1).bad == 1);
}

TEST_CASE("Tissue is looked for on the larger level where a level is blank") {
  Picture picture = {256, 256, 3, std::vector<std::uint8_t>(std::size_t{256} * 256 * 3, 243)};
  const Picture glass = picture;
  // In one block of the small level, so that no two show that something is lost.
  for (int y = 96; y < 128; ++y) {
    for (int x = 96; x < 128; ++x) {
      if ((x - 112) * (x - 112) + (y - 112) * (y - 112) > 256) continue;
      auto* pixel = picture.data.data() + (y * picture.width + x) * 3;
      pixel[0] = 200;
      pixel[1] = 120;
      pixel[2] = 170;
    }
  }
  const Picture blank = reduced(glass, 4);
  TestSlide alone({level_of(picture)}, 2.0);
  const auto expected = prepare_mask(alone.context(), {});
  REQUIRE(tissue_share(*expected) > 0.0);
  TestSlide slide({level_of(picture), level_of(blank)}, 2.0);
  SlideContext context = slide.context();
  REQUIRE(context.slide.info().levels.size() == 2);
  const auto mask = prepare_mask(context, {});
  CHECK(mask->pixels == expected->pixels);
  CHECK(Preparation::of(context, {}).share() == tissue_share(*expected));
  CHECK(doubts_of_tissue(*mask, context, "") == std::vector{found_on_level0});
  CHECK_FALSE(Preparation::of(context, {}).tiles_as_glass().contains(1));
  // Where the larger one has no tissue either, nothing is said of levels.
  TestSlide empty({level_of(glass), level_of(blank)}, 2.0);
  const SlideContext none = empty.context();
  REQUIRE(none.slide.info().levels.size() == 2);
  CHECK(tissue_share(*prepare_mask(none, {})) == 0.0);
  CHECK(Preparation::of(none, {}).doubts().empty());
}

TEST_CASE("Memory is taken for reading the larger level, too") {
  SlideInfo info;
  info.mpp = 2.0;
  Level level;
  level.width = 4096;
  level.height = 64;
  level.tile_width = level.tile_height = 32;
  info.levels = {level};
  const std::uint64_t alone = preparation_bytes(info, 0, nullptr);
  level.width = 1024;
  level.height = 16;
  info.levels.push_back(level);
  REQUIRE(static_cast<int>(choose_small_level(info, info.mpp).level) == 1);
  CHECK(preparation_bytes(info, 0, nullptr) == alone);
}

TEST_CASE("A slide that the run gives up is left at the next tile of its small level") {
  const TestSlide slide(make_stained_picture(96, 64, 4));
  const int allowed = 3;  // tiles of six
  std::atomic<bool> is_open{false};
  std::atomic<int> asked{0};
  const auto opened =
      Slide::open(slide.path, {.give_up = [&] { return is_open.load() && ++asked > allowed; }, .mpp = tissue_mpp});
  is_open = true;
  for (const std::string name : {"tissue", "stain"}) {
    asked = 0;
    const SlideContext context{*opened, 0, slide.path, opened->info().mpp};
    CHECK(error_of(*operator_of(running(name)), context) ==
          slide.path.string() + ": was being read when the run gave it up");
    CHECK(asked == allowed + 1);
  }
}

TEST_CASE("tissue gives its share, and files that hold the mask and its outlines") {
  const Picture picture = make_stained_picture(300, 280, 5);
  TestSlide slide(picture);
  const auto parameters = operator_of(running("tissue"))->prepare(slide.context());
  const Mask mask = mask_of(picture);
  REQUIRE(parameters->values().size() == 1);
  CHECK(parameters->values()[0].name == "tissue.share");
  CHECK(parameters->values()[0].value == tissue_share(mask));
  const auto files = parameters->files();
  REQUIRE(files.size() == 2);
  CHECK(files[0].product == "outlines");
  CHECK(files[0].suffix == ".tissue.geojson");
  CHECK(files[1].product == "mask");
  CHECK(files[1].suffix == ".tissue.ome.tif");

  const auto outlines = slide.folder / ("name" + files[0].suffix);
  files[0].write(outlines);
  CHECK(read_file(outlines) == bytes_of_text(geojson_of(mask, tissue_mpp, 1.0)));
  const auto labels = slide.folder / ("name" + files[1].suffix);
  files[1].write(labels);
  const auto read = Slide::open(labels);
  REQUIRE(read->info().levels.size() == 1);
  CHECK(read->info().levels[0].codec == Codec::zstd);
  CHECK(read->info().mpp.value() == doctest::Approx(tissue_mpp));
  CHECK(read_level(*read) == mask.pixels);
  // Of names only the one that the file has.
  const Bytes bytes = read_file(labels);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  CHECK(text.find("Name=\"name\"") != std::string::npos);
  for (const char* own : {"Creator=\"slidestream ", "Namespace=\"slidestream\""}) {
    REQUIRE(text.find(own) != std::string::npos);
    text.erase(text.find(own), std::string(own).size());
  }
  // The setting and the figure have keys of their own.
  for (const char* key : {"<M K=\"tissue.method\">", "<M K=\"tissue.share\">0.5<", "<M K=\"figure.tissue.share\">"}) {
    CHECK_MESSAGE(text.find(key) != std::string::npos, text);
    CHECK_MESSAGE(text.find(key) == text.rfind(key), text);
  }
  CHECK(text.find("slide") == std::string::npos);

  const auto names = [&] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(slide.folder.path())) ++count;
    return count;
  };
  CHECK(names() == 3);
  for (const PreparedFile& file : files) {
    CHECK_THROWS_AS(file.write(slide.folder / "none" / "x"), OutputError);
    // What was written stays nowhere when it can't get its name.
    std::filesystem::create_directories(slide.folder / "taken" / "inside");
    CHECK_THROWS_WITH_AS(file.write(slide.folder / "taken"), doctest::Contains("taken: it isn't a regular file"),
                         Error);
    CHECK(names() == 4);
  }
}

TEST_CASE("Given outlines stand beside the slide") {
  TestSlide slide(make_stained_picture(100, 60, 6));
  Config config = running("tissue");
  config.tissue.source = TissueSource::geojson;
  const auto op = operator_of(config);
  const auto outlines = (slide.folder / "slide.geojson").string();
  CHECK(error_of(*op, slide.context()).starts_with(outlines + ": "));
  std::ofstream(outlines)
      << R"({"type": "Polygon", "coordinates": [[[10, 20], [30, 20], [30, 50], [10, 50], [10, 20]]]})";
  CHECK(op->prepare(slide.context())->values()[0].value == 20.0 * 30.0 / (100.0 * 60.0));
  std::ofstream(outlines) << "{";
  CHECK(error_of(*op, slide.context()).starts_with(outlines + ": "));
}

TEST_CASE("Given outlines aren't drawn for a slide that is given up") {
  TestSlide slide(make_stained_picture(100, 60, 6));
  Config config = running("tissue");
  config.tissue.source = TissueSource::geojson;
  std::ofstream(slide.folder / "slide.geojson")
      << R"({"type": "Polygon", "coordinates": [[[1, 2], [3, 2], [3, 5], [1, 2]]]})";
  const SlideContext context = slide.context();
  Admission admission;
  admission.given_up = [] { return true; };
  CHECK_THROWS_AS(Preparation::of(context, config, std::move(admission)).mask(), StoppedError);
}

TEST_CASE("Operators of a run share the small level and its mask") {
  const Picture picture = make_stained_picture(240, 200, 7);
  TestSlide slide(picture);
  Config config;
  config.operators.run = {"tissue", "stain"};
  const auto operators = make_operators(config);
  const SlideContext context = slide.context();
  const auto tissue = operators[0]->prepare(context);
  REQUIRE(context.common != nullptr);
  const auto* pixels = context.common->image().pixels.data();
  const auto mask = context.common->mask();
  operators[1]->prepare(context);
  CHECK(context.common->image().pixels.data() == pixels);
  CHECK(prepare_mask(context, config) == mask);
}
