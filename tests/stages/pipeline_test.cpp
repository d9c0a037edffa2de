#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>

#include "slide/test_images.hpp"
#include "slide/test_tiff.hpp"
#include "support/pipeline_runs.hpp"
#include "support/random_runs.hpp"
#include "support/reference.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using test::check_same;
using test::config_for;
using test::run;

namespace {

/// In tiles of 32 x 32 pixels.
test::TestDirectory level_of(const test::Picture& picture) {
  test::TestDirectory directory = test::tiled_directory(static_cast<std::uint32_t>(picture.width),
                                                        static_cast<std::uint32_t>(picture.height), 32, 32, 3);
  for (int y = 0; y < picture.height; y += 32) {
    for (int x = 0; x < picture.width; x += 32) {
      directory.tiles.push_back(test::to_bytes(test::cut(picture, x, y, 32, 32)));
    }
  }
  return directory;
}

}  // namespace

TEST_CASE("random slides and analyses give what the definition gives") {
  const test::TemporaryFolder folder;
  std::mt19937 random(11);
  // Of 15 each window has had each coding; a sanitizer has each window.
  for (int i = 0; i < test::rounds(test::wide_or_few(24, 17)); ++i) {
    const test::RandomRun made = test::random_run(folder, Backend::cpu, i, random);
    CAPTURE(i);
    const RunResult result = run(made.config, {made.slide});
    REQUIRE(result.slides.size() == 1);
    const SlideResult& slide = result.slides[0];
    REQUIRE_MESSAGE(slide.done, slide.error);
    CHECK(slide.missing_tiles == 1);
    const test::ReferenceResult expected = test::reference_spectrum(made.image, made.config.analysis);
    CHECK(test::difference(slide.sums, slide.map, expected) == "");
  }
}

TEST_CASE("a stride of one on a tiny slide") {
  const test::TemporaryFolder folder;
  Config config = config_for(Backend::cpu);
  config.analysis.window = 64;
  config.analysis.stride = 1;
  config.pipeline.strip_height = 16;
  test::Image image = test::textured_image(70, 83, 5);
  test::write_test_slide(folder / "a.tif", image, {.tile_width = 16, .tile_height = 16});
  const RunResult result = run(config, {folder / "a.tif"});
  REQUIRE(result.slides[0].done);
  CHECK(result.slides[0].sums.windows == 7 * 20);
  CHECK(test::difference(result.slides[0].sums, result.slides[0].map,
                         test::reference_spectrum(image, config.analysis)) == "");
}

TEST_CASE("strips, depth, threads, memory and order of completion change no bit (long)") {
  const test::TemporaryFolder folder;
  // One of each coding.
  const std::vector<std::string> slides = test::varied_slides(folder, 3);
  Config config = config_for(Backend::cpu);
  for (const int window : {256, 64}) {
    if (window == 256 && test::rounds(2) < 2) continue;
    config.analysis.window = window;
    config.analysis.stride = 128;
    config.pipeline = PipelineConfig{};
    config.pipeline.backend = Backend::cpu;
    config.pipeline.threads = 1;
    const RunResult expected = run(config, slides);
    test::require_done(expected);

    struct Variant {
      int window;  ///< that it has where there isn't time for both
      int strip_height, queue_depth, threads, memory_mib;
      SplitSlides split = SplitSlides::never;
    };
    const bool has_all = test::is_wide() || test::rounds(2) < 2;
    for (const Variant v :
         {Variant{256, 128, 1, 1, 640}, Variant{64, 256, 2, 8, 640}, Variant{256, 1000, 16, 3, 640},
          Variant{256, 1024, 3, 2, 2}, Variant{64, 4096, 4, 4, 640}, Variant{64, 16, 5, 2, 4},
          Variant{256, 128, 4, 2, 640, SplitSlides::always}, Variant{64, 64, 3, 2, 2, SplitSlides::always}}) {
      if (!has_all && v.window != window) continue;
      config.pipeline.strip_height = v.strip_height;
      config.pipeline.queue_depth = v.queue_depth;
      config.pipeline.threads = v.threads;
      config.pipeline.memory_mib = v.memory_mib;
      config.gpu.split_slides = v.split;
      CAPTURE(window);
      CAPTURE(v.strip_height);
      CAPTURE(v.queue_depth);
      check_same(run(config, slides, test::dawdling), expected);
    }
  }
}

TEST_CASE("results stand in input order, and the corpus is their sum") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  for (std::uint64_t i = 0; i < 12; ++i) {
    test::Image image = test::textured_image(300 + static_cast<std::int64_t>(i % 5) * 90, 300, i);
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  slides.insert(slides.begin() + 3, folder / "absent.tif");
  const RunResult result = run(config_for(Backend::cpu), slides);
  REQUIRE(result.slides.size() == slides.size());
  SpectrumSums sum;
  sum.histogram.assign(1500, 0);
  for (std::size_t i = 0; i < slides.size(); ++i) {
    CHECK(result.slides[i].path == slides[i]);
    CHECK(result.slides[i].done == (i != 3));
    sum += result.slides[i].sums;
  }
  CHECK(result.slides[3].error.find("source: ") == 0);
  CHECK(sum.histogram == result.corpus.histogram);
  CHECK(sum.sum_of_squares == result.corpus.sum_of_squares);
  CHECK_FALSE(result.interrupted);
}

TEST_CASE("a slide smaller than a window fails and says so") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(255, 400, 1);
  test::write_test_slide(folder / "a.tif", image);
  const RunResult result = run(config_for(Backend::cpu), {folder / "a.tif"});
  CHECK_FALSE(result.slides[0].done);
  CHECK(result.slides[0].error == "source: the level has 255 x 400 pixels, less than one window of 256 x 256");
}

TEST_CASE("a slide smaller than a window has what other operators make") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(255, 400, 1);
  test::write_test_slide(folder / "a.tif", image);
  Config config = config_for(Backend::cpu);
  config.operators.run = {"spectrum", "identity"};
  config.image.format = ImageFormat::ome_tiff;
  config.output.dir = (folder / "out").string();
  const RunResult result = run(config, {folder / "a.tif"});
  REQUIRE(result.slides[0].done);
  CHECK(result.slides[0].error == "spectrum: the level has 255 x 400 pixels, less than one window of 256 x 256");
  CHECK(result.slides[0].sums.windows == 0);
  CHECK(result.slides[0].artifacts.size() == 1);
  // And what none of its pixels went to: the mask is of the small level.
  config.operators.run = {"spectrum", "tissue"};
  config.output.dir = (folder / "tissue").string();
  const RunResult found = run(config, {folder / "a.tif"});
  REQUIRE(found.slides[0].done);
  CHECK(found.slides[0].error == result.slides[0].error);
  CHECK(found.slides[0].sums.windows == 0);
  CHECK(found.slides[0].artifacts.size() == 2);
}

TEST_CASE("a level that isn't there fails the slide") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(300, 300, 1);
  test::write_test_slide(folder / "a.tif", image);
  Config config = config_for(Backend::cpu);
  config.input.level = 2;
  CHECK(run(config, {folder / "a.tif"}).slides[0].error == "source: level 2 was asked for, but the slide has 1 level");
}

TEST_CASE("no slides make an empty result") {
  const RunResult result = run(config_for(Backend::cpu), {});
  CHECK(result.slides.empty());
  CHECK(result.corpus.windows == 0);
}

TEST_CASE("what this build can't do is refused before anything starts") {
  Config config = config_for(Backend::cpu);
  RunControl control;
  config.pipeline.backend = Backend::cuda;
  CHECK_THROWS_WITH_AS(run_pipeline(config, {}, control), doctest::Contains("pipeline.backend"), ConfigError);
  config = config_for(Backend::cpu);
  config.decode.device = DecodeDevice::gpu;
  CHECK_THROWS_WITH_AS(run_pipeline(config, {}, control), doctest::Contains("decode.device"), ConfigError);
}

TEST_CASE("tiles of a smaller level that count as glass where tissue is found count as missing or bad, with a line") {
  const test::TemporaryFolder folder;
  const test::Picture picture = test::make_stained_picture(160, 80, 4);
  // Level 1 has 40 x 20 pixels: too few to be compared with level 0.
  const test::TestDirectory base = level_of(picture);
  const test::TestDirectory level = level_of(test::reduced(picture, 4));
  Config config = config_for(Backend::cpu);
  config.output.maps = MapFormat::none;
  config.image.compression = ImageCompression::none;
  config.image.tile = 64;
  config.decode.on_bad_tile = BadTilePolicy::white;
  int runs = 0;
  std::vector<std::string> said;
  const auto slide_of = [&](const std::vector<test::TestDirectory>& levels, const std::vector<std::string>& operators,
                            double mpp) {
    test::TestTiff tiff;
    tiff.directories = levels;
    const std::string path = folder.write("slide.tif", tiff.bytes());
    REQUIRE(Slide::open(path)->info().levels.size() == levels.size());
    config.operators.run = operators;
    config.input.mpp = mpp;
    config.output.dir = (folder / ("out" + std::to_string(++runs))).string();
    RunControl control;
    std::mutex mutex;
    said.clear();
    control.on_warning = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      if (line.find("as glass") != std::string::npos) said.push_back(line.substr(path.size() + 2));
    };
    const RunResult result = run_pipeline(config, {path}, control);
    REQUIRE(result.slides.size() == 1);
    REQUIRE_MESSAGE(result.slides[0].complete(), result.slides[0].error);
    return result.slides[0];
  };
  const std::vector<std::string> alone = {"tissue"};
  const std::vector<std::string> both = {"identity", "tissue"};
  test::TestDirectory without = level;
  without.tiles[1].clear();
  test::TestDirectory damaged = level;
  damaged.tiles[1].resize(7);
  test::TestDirectory without0 = base;
  without0.tiles[1].clear();
  for (const auto& operators : {alone, both}) {
    CAPTURE(operators.size());
    // Pixels of 8 micrometres are level 1's.
    SlideResult slide = slide_of({base, without}, operators, 2.0);
    CHECK(slide.missing_tiles == 1);
    CHECK(slide.bad_tiles == 0);
    CHECK(said == std::vector<std::string>{"smaller levels lack tiles that level 0 has: 1 in level 1; they are white "
                                           "there, and count as glass where tissue is found"});
    slide = slide_of({base, damaged}, operators, 2.0);
    CHECK(slide.missing_tiles == 0);
    CHECK(slide.bad_tiles == 1);
    CHECK(said == std::vector<std::string>{"tissue is found on level 1, where 1 bad tile counts as glass"});
    // They are level 0's, whose tiles count once.
    slide = slide_of({without0}, operators, 8.0);
    CHECK(slide.missing_tiles == 1);
    CHECK(said.empty());
    slide = slide_of({base, level}, operators, 2.0);
    CHECK(slide.missing_tiles + slide.bad_tiles == 0);
    CHECK(said.empty());
  }
}

TEST_CASE("a line says that a level has lost a part of its picture, and tissue is found on the larger one") {
  const test::TemporaryFolder folder;
  const test::Picture picture = test::make_stained_picture(256, 256, 1);
  test::TestDirectory half = level_of(test::reduced(picture, 4));
  REQUIRE(half.tiles.size() == 4);
  for (const std::size_t right : {1U, 3U})
    std::fill(half.tiles[right].begin(), half.tiles[right].end(), std::byte{243});
  Config config = config_for(Backend::cpu);
  config.operators.run = {"tissue"};
  config.input.mpp = 2.0;
  std::vector<double> shares;
  for (const auto& levels : {std::vector{level_of(picture)}, std::vector{level_of(picture), half}}) {
    test::TestTiff tiff;
    tiff.directories = levels;
    const std::string path = folder.write("slide.tif", tiff.bytes());
    REQUIRE(Slide::open(path)->info().levels.size() == levels.size());
    config.output.dir = (folder / ("out" + std::to_string(levels.size()))).string();
    std::mutex mutex;
    std::vector<std::string> said;
    RunControl control;
    control.on_warning = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      said.push_back(line);
    };
    const RunResult result = run_pipeline(config, {path}, control);
    REQUIRE(result.slides.size() == 1);
    REQUIRE_MESSAGE(result.slides[0].complete(), result.slides[0].error);
    REQUIRE(result.slides[0].values.size() == 1);
    shares.push_back(result.slides[0].values[0].value);
    const std::string line = path + ": level 1 is blank where level 0 shows something: tissue is found on level 0";
    CHECK(std::ranges::count(said, line) == (levels.size() == 2 ? 1 : 0));
  }
  CHECK(shares[0] == shares[1]);
}
