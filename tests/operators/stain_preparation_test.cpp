// What the operator `stain` finds out about a slide before its pixels pass by.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <thread>
#include <vector>

#include "operators/prepared_slides.hpp"
#include "operators/stain/stain.hpp"
#include "operators/stain/stained_blocks.hpp"
#include "operators/tissue/preparation.hpp"
#include "slide/decode_memory.hpp"
#include "slide/test_images.hpp"
#include "support/operator_runs.hpp"

using namespace slidestream;
using namespace slidestream::operators;
using namespace slidestream::test;

namespace {

/// Stains of a picture whose pixels are larger than those of blocks: 64 x 64 of its own at a time, all that hold
/// tissue.
StainBasis stains_of(const Picture& picture, const Mask& mask) {
  std::vector<std::uint8_t> pixels;
  for (int top = 0; top < picture.height; top += 64) {
    for (int left = 0; left < picture.width; left += 64) {
      for (int y = top; y < std::min(top + 64, picture.height); ++y) {
        for (int x = left; x < std::min(left + 64, picture.width); ++x) {
          if (mask.row(y)[static_cast<std::size_t>(x)] != 0)
            pixels.insert(pixels.end(), picture.at(x, y), picture.at(x, y) + 3);
        }
      }
    }
  }
  const PixelImage image = image_of(picture);
  return fit_stains(pixels, measure_white(image.view(), mask));
}

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// A slide of one tile that takes 4 MiB of the memory for decoding.
TestSlide slide_of_large_tile() {
  constexpr int side = 1056;
  TestDirectory directory = tiled_directory(side, side, side, side, 3);
  directory.tiles.push_back(std::vector<std::byte>(std::size_t{side} * side * 3, std::byte{200}));
  return TestSlide({directory});
}

/// What happens to a slide that is let in like this.
std::string error_with(const Admission& admission, const Operator& op, TestSlide& slide, const Config& config) {
  const SlideContext context = slide.context();
  context.common = std::make_shared<Preparation>(context, config, admission);
  return error_of(op, context);
}

}  // namespace

TEST_CASE("stain normalises with the slide's own stains, in any blocks") {
  const Picture picture = make_stained_picture(240, 200, 7);
  TestSlide slide(picture);
  const PixelImage image = image_of(picture);
  const StainBasis basis = stains_of(picture, mask_of(picture));
  std::mt19937_64 random(1);
  for (const StainOutput output : {StainOutput::normalised, StainOutput::hematoxylin, StainOutput::eosin}) {
    Config config = running("stain");
    config.stain.output = output;
    const auto op = operator_of(config);
    PixelImage expected(image.image, rgb_format);
    Stain(stain_map(basis, published_stains(), output)).run(expected.view(), image.view());
    const auto parameters = op->prepare(slide.context());
    CHECK(run_in_blocks(*op, image, parameters.get(), random).same_pixels(expected, expected.rect));
    CHECK(parameters->files().empty());
  }
}

TEST_CASE("a fit doesn't depend on the levels that a slide has, and its figures are results (long)") {
  // 768 x 640 pixels of 0.5 um, some of them dark, and exact means of them.
  Picture fine = make_stained_picture(768, 640, 7);
  std::mt19937 random(6);
  for (int i = 0; i < 768 * 640; ++i) {
    if (random() % 16 == 0) std::fill_n(fine.data.begin() + 3 * i, 3, std::uint8_t{20});
  }
  Picture half{384, 320, 3, std::vector<std::uint8_t>(384 * 320 * 3)};
  for (int y = 0; y < half.height; ++y) {
    for (int x = 0; x < half.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        int sum = 2;
        for (int i = 0; i < 4; ++i) sum += fine.at(2 * x + i % 2, 2 * y + i / 2)[c];
        half.data[static_cast<std::size_t>((y * half.width + x) * 3 + c)] = static_cast<std::uint8_t>(sum / 4);
      }
    }
  }
  TestSlide alone({level_of(fine)}, 0.5);
  TestSlide two({level_of(fine), level_of(half)}, 0.5);
  Config config = running("stain");
  // The mask alone comes from another level.
  config.tissue.source = TissueSource::geojson;
  for (TestSlide* slide : {&alone, &two}) {
    std::filesystem::path outlines = slide->path;
    std::ofstream(outlines.replace_extension(".geojson"))
        << R"({"type": "Polygon", "coordinates": [[[64, 32], [700, 32], [700, 600], [64, 600], [64, 32]]]})";
  }
  const auto op = operator_of(config);
  const auto first = op->prepare(alone.context())->values();
  const auto second = op->prepare(two.context())->values();
  REQUIRE(first.size() == 11);
  REQUIRE(second.size() == 11);
  for (std::size_t i = 0; i < first.size(); ++i) {
    INFO(first[i].name);
    CHECK(first[i].name == second[i].name);
    CHECK(first[i].value == doctest::Approx(second[i].value).epsilon(1e-9));
  }
  CHECK(first[0].name == "stain.white_red");
  CHECK(first[3].name == "stain.hematoxylin_red");
  CHECK(first[6].name == "stain.hematoxylin_maximum");
  CHECK(first[10].name == "stain.eosin_maximum");
  config.stain.white = {250.0, 251.0, 252.0};
  CHECK(operator_of(config)->prepare(alone.context())->values()[1].value == 251.0);
}

TEST_CASE("stain's reference is another slide, which is looked at once") {
  const Picture picture = make_stained_picture(240, 200, 7);
  const Picture other = make_stained_picture(200, 240, 9);
  TestSlide slide(picture);
  // Its own pixel size counts for it, not the one that is given for the slides.
  TestDirectory directory = level_of(other);
  directory.set_text(270, "Aperio Image Library v1|MPP = 16");
  TestSlide reference({directory});
  Config config = running("stain");
  config.stain.reference = reference.path.string();
  config.input.mpp = tissue_mpp;
  const auto op = operator_of(config);
  const PixelImage image = image_of(picture);
  const Mask other_mask = mask_of(other, 16.0);
  PixelImage expected(image.image, rgb_format);
  Stain(stain_map(stains_of(picture, mask_of(picture)), stains_of(other, other_mask), StainOutput::normalised))
      .run(expected.view(), image.view());
  std::mt19937_64 random(1);
  for (int i = 0; i < 2; ++i) {
    const auto parameters = op->prepare(slide.context());
    CHECK(run_in_blocks(*op, image, parameters.get(), random).same_pixels(expected, expected.rect));
    std::filesystem::remove(reference.path);
  }
  // A run that begins now doesn't find it.
  const std::string missing = "stain.reference: " + reference.path.string() + ": ";
  const auto late = operator_of(config);
  CHECK(error_of(*late, slide.context()).starts_with(missing));
  CHECK(error_of(*late, slide.context()).starts_with(missing));
}

TEST_CASE("the tiles of stain's reference take the memory that slides' tiles do") {
  TestSlide slide(make_stained_picture(240, 200, 7));
  TestSlide reference = slide_of_large_tile();
  Config config = running("stain");
  config.stain.reference = reference.path.string();
  Admission admission;
  admission.decode_memory = std::make_shared<DecodeMemory>(mib);
  CHECK(error_with(admission, *operator_of(config), slide, config)
            .starts_with("stain.reference: " + config.stain.reference +
                         ": level 0 tile 0 takes 4 MiB to decode, and decoding may take 1 MiB; raise "
                         "pipeline.memory_mib to 1"));
}

TEST_CASE("a stop ends the work on stain's reference, which isn't at fault") {
  TestSlide slide(make_stained_picture(240, 200, 7));
  TestDirectory directory = level_of(make_stained_picture(200, 240, 9));
  directory.set_text(270, "Aperio Image Library v1|MPP = 8");
  TestSlide reference({directory});
  Config config = running("stain");
  config.stain.reference = reference.path.string();
  const auto op = operator_of(config);
  Admission stopped;
  stopped.stopped = [] { return true; };
  const SlideContext context = slide.context();
  context.common = std::make_shared<Preparation>(context, config, stopped);
  CHECK_THROWS_AS(op->prepare(context), StoppedError);
  CHECK(error_with({}, *op, slide, config).empty());
}

TEST_CASE("input.max_seconds and a stop bound the wait for stain's reference, which is no slide's own time") {
  TestSlide slide(make_stained_picture(240, 200, 7));
  TestSlide other(make_stained_picture(240, 200, 7));
  TestSlide reference = slide_of_large_tile();
  Config config = running("stain");
  config.stain.reference = reference.path.string();
  config.input.max_seconds = 1;
  const auto op = operator_of(config);
  const auto memory = std::make_shared<DecodeMemory>(8 * mib);
  // The reference waits for memory that it never gets.
  const auto all = memory->take(memory->size(), {});
  std::atomic<bool> looks = false;
  std::atomic<bool> goes_on = false;
  std::atomic<std::int64_t> waited = 0;
  Admission first;
  first.decode_memory = memory;
  first.stopped = [&] {
    looks = true;
    while (!goes_on) std::this_thread::yield();
    return false;
  };
  first.waited = [&](std::chrono::nanoseconds time) { waited += time.count(); };
  std::string failure;
  std::jthread looking([&] { failure = error_with(first, *op, slide, config); });
  while (!looks) std::this_thread::yield();
  Admission second;
  second.stopped = [] { return true; };
  CHECK(error_with(second, *op, other, config) == config.stain.reference + ": was waited for when the run gave it up");
  goes_on = true;
  looking.join();
  const std::string late = "stain.reference: " + config.stain.reference + ": took longer than input.max_seconds = 1";
  CHECK(failure == late);
  CHECK(std::chrono::nanoseconds(waited) >= std::chrono::seconds(1));
  // All slides fail with the one cause, at once.
  CHECK(error_with({}, *op, other, config) == late);
}

TEST_CASE("Glass doesn't tell how it is stained") {
  Picture picture = make_stained_picture(100, 100, 8);
  std::fill(picture.data.begin(), picture.data.end(), std::uint8_t{245});
  TestSlide glass(picture);
  Config config = running("stain");
  const std::string cause = "only 0 stained pixels of tissue in the blocks that were looked at; stains need 1000";
  CHECK(error_of(*operator_of(config), glass.context()) == cause);
  config.stain.reference = glass.path.string();
  TestSlide slide(make_stained_picture(240, 200, 7));
  CHECK(error_of(*operator_of(config), slide.context()) == "stain.reference: " + glass.path.string() + ": " + cause);
}

TEST_CASE("Stains aren't fitted to pixels of the fit that are dark, nor to those beside them") {
  constexpr int side = 256;
  const std::array<std::uint8_t, 3> colour = {120, 60, 150};
  struct Case {
    double mpp;  // the fit's pixels have 1 micrometre
    int dark;    // side of two dark squares, in pixels of the slide
    int x;       // of the first
    int y;
    std::int64_t pixels;  // of the fit
    std::int64_t left_out;
    std::int64_t mixed;  // with dark ones, and not dark themselves
  };
  // The other is at (40, 0), where there is no row above. With 0.4 pixels are made of 2.5 x 2.5.
  for (const Case& each : {Case{1.0, 1, 101, 57, 256 * 256, 9 + 6, 0}, Case{0.5, 2, 100, 56, 128 * 128, 9 + 6, 0},
                           Case{0.5, 1, 101, 57, 128 * 128, 0, 2}, Case{0.4, 10, 100, 50, 102 * 102, 36 + 30, 0}}) {
    CAPTURE(each.mpp);
    CAPTURE(each.dark);
    Picture picture{side, side, 3, {}};
    for (int i = 0; i < side * side; ++i) picture.data.insert(picture.data.end(), colour.begin(), colour.end());
    for (int i = 0; i < 2 * each.dark * each.dark; ++i) {
      const int first = i % 2 == 0 ? each.y * side + each.x : 40;
      const int at = first + i / 2 / each.dark * side + i / 2 % each.dark;
      for (const int c : {0, 1, 2})
        picture.data[static_cast<std::size_t>(3 * at + c)] = static_cast<std::uint8_t>(37 + c);
    }
    TestSlide slide(picture, each.mpp);
    const SlideContext context = slide.context();
    const Mask all = {{1, 1}, {side, side}, {side, side}, {1}};
    const std::vector<std::uint8_t> stained = stained_blocks(context.slide, each.mpp, all, 1.0, BadTilePolicy::fail);
    REQUIRE(std::ssize(stained) == 3 * (each.pixels - each.left_out));
    std::int64_t mixed = 0;
    for (std::size_t i = 0; i < stained.size(); i += 3) mixed += stained[i] != colour[0] ? 1 : 0;
    CHECK(mixed == each.mixed);
  }
}
