#include <doctest/doctest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>

#include "stages/pipeline.hpp"
#include "support/reference.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

namespace {

Config small_config() {
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = 2;
  config.output.maps = MapFormat::npy;
  return config;
}

RunResult run(const Config& config, const std::vector<std::string>& slides) {
  RunControl control;
  return run_pipeline(config, slides, control);
}

/// Every bit that a slide's result has, but for its time.
void check_same(const SlideResult& a, const SlideResult& b) {
  CHECK(a.path == b.path);
  CHECK(a.done == b.done);
  CHECK(a.error == b.error);
  CHECK(a.sums.histogram == b.sums.histogram);
  CHECK(a.sums.windows == b.sums.windows);
  CHECK(a.sums.values == b.sums.values);
  CHECK(a.sums.clipped == b.sums.clipped);
  CHECK(a.sums.sum == b.sums.sum);
  CHECK(a.sums.sum_of_squares == b.sums.sum_of_squares);
  CHECK(a.map.values == b.map.values);
  CHECK(a.missing_tiles == b.missing_tiles);
  CHECK(a.bad_tiles == b.bad_tiles);
}

/// Sleeps a random moment in every stage, so that batches complete in another order each time.
void dawdle(void*, const char*, const std::string&, std::size_t) {
  static std::atomic<std::uint32_t> calls{0};
  const std::uint32_t mixed = (calls++ + 1) * 2654435769U;
  std::this_thread::sleep_for(std::chrono::microseconds(mixed >> 21));
}

}  // namespace

TEST_CASE("random slides and analyses give what the definition gives") {
  const test::TemporaryFolder folder;
  std::mt19937 random(11);
  const auto in = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  constexpr int windows[] = {64, 128, 256, 512};
  for (int i = 0; i < 24; ++i) {
    Config config = small_config();
    AnalysisConfig& analysis = config.analysis;
    analysis.window = windows[i % 4];
    analysis.stride = i % 3 == 0 ? analysis.window / 2 : in(analysis.window / 4, analysis.window * 3 / 2);
    analysis.smoothing_radius = i % 2 == 0 ? 3 : 0;
    config.pipeline.strip_height = in(16, 400);
    config.pipeline.queue_depth = in(1, 5);
    config.pipeline.memory_mib = i % 5 == 0 ? 8 : 640;
    test::Image image =
        test::textured_image(analysis.window + in(0, 500), analysis.window + in(0, 500), static_cast<std::uint64_t>(i));
    const std::string path = folder / ("s" + std::to_string(i) + ".tif");
    const auto coding = static_cast<test::Coding>(i % 3);
    test::write_test_slide(path, image,
                           {.tile_width = static_cast<std::uint32_t>(16 * in(1, 12)),
                            .tile_height = static_cast<std::uint32_t>(16 * in(1, 12)),
                            .coding = coding,
                            .missing = {1}});
    CAPTURE(i);
    const RunResult result = run(config, {path});
    REQUIRE(result.slides.size() == 1);
    const SlideResult& slide = result.slides[0];
    REQUIRE_MESSAGE(slide.done, slide.error);
    CHECK(slide.missing_tiles == 1);
    const test::ReferenceResult expected = test::reference_spectrum(image, analysis);
    CHECK(test::difference(slide.sums, slide.map, expected) == "");
  }
}

TEST_CASE("a stride of one on a tiny slide") {
  const test::TemporaryFolder folder;
  Config config = small_config();
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

TEST_CASE("strips, depth, threads, memory and order of completion change no bit") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  constexpr std::uint32_t tile_sizes[][2] = {{64, 64}, {240, 240}, {256, 32}, {48, 112}};
  for (std::uint64_t i = 0; i < 4; ++i) {
    test::Image image = test::textured_image(700 + 133 * static_cast<std::int64_t>(i), 1500, i);
    slides.push_back(folder / ("s" + std::to_string(i) + ".tif"));
    test::write_test_slide(
        slides.back(), image,
        {.tile_width = tile_sizes[i][0], .tile_height = tile_sizes[i][1], .coding = static_cast<test::Coding>(i % 3)});
  }
  Config config = small_config();
  for (const int window : {256, 64}) {
    config.analysis.window = window;
    config.analysis.stride = 128;
    config.pipeline = PipelineConfig{};
    config.pipeline.backend = Backend::cpu;
    config.pipeline.threads = 1;
    const RunResult expected = run(config, slides);
    for (const SlideResult& slide : expected.slides) REQUIRE_MESSAGE(slide.done, slide.error);

    struct Variant {
      int strip_height, queue_depth, threads, memory_mib;
      SplitSlides split = SplitSlides::never;
    };
    for (const Variant v : {Variant{128, 1, 1, 640}, Variant{256, 2, 8, 640}, Variant{1000, 16, 3, 640},
                            Variant{1024, 3, 2, 2}, Variant{4096, 4, 4, 640}, Variant{16, 5, 2, 4},
                            Variant{128, 4, 2, 640, SplitSlides::always}, Variant{64, 3, 2, 2, SplitSlides::always}}) {
      config.pipeline.strip_height = v.strip_height;
      config.pipeline.queue_depth = v.queue_depth;
      config.pipeline.threads = v.threads;
      config.pipeline.memory_mib = v.memory_mib;
      config.gpu.split_slides = v.split;
      CAPTURE(window);
      CAPTURE(v.strip_height);
      CAPTURE(v.queue_depth);
      RunControl control;
      const RunResult result = run_pipeline_with_faults(config, slides, control, {dawdle, nullptr});
      REQUIRE(result.slides.size() == slides.size());
      for (std::size_t i = 0; i < slides.size(); ++i) check_same(result.slides[i], expected.slides[i]);
      CHECK(result.corpus.sum == expected.corpus.sum);
      CHECK(result.corpus.histogram == expected.corpus.histogram);
    }
  }
}

TEST_CASE("bad and missing tiles count once however the level is cut") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(2000, 600, 3);
  const std::string path = folder / "a.tif";
  test::write_test_slide(path, image, {.coding = test::Coding::jpeg, .missing = {0, 5, 40, 41}});
  {
    // Damage the entropy-coded data of one tile.
    const auto slide = Slide::open(path);
    const TileRange range = slide->tile(0, 70);
    FILE* file = fopen(path.c_str(), "r+b");
    REQUIRE(file != nullptr);
    fseek(file, static_cast<long>(range.offset + range.length / 2), SEEK_SET);
    for (int i = 0; i < 40; ++i) fputc(0xff, file);
    fclose(file);
  }
  Config config = small_config();
  const RunResult failed = run(config, {path});
  CHECK_FALSE(failed.slides[0].done);
  CHECK(failed.slides[0].error.find("tile 70 (column 6, row 2) is bad") != std::string::npos);
  CHECK(failed.slides[0].sums.windows == 0);
  CHECK(failed.corpus.windows == 0);

  config.decode.on_bad_tile = BadTilePolicy::white;
  const RunResult whole = run(config, {path});
  config.pipeline.memory_mib = 4;
  const RunResult panels = run(config, {path});
  CHECK(whole.slides[0].bad_tiles == 1);
  CHECK(whole.slides[0].missing_tiles == 4);
  check_same(panels.slides[0], whole.slides[0]);
  config.gpu.split_slides = SplitSlides::always;
  const RunResult fragments = run(config, {path});
  check_same(fragments.slides[0], whole.slides[0]);
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
  const RunResult result = run(small_config(), slides);
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
  const RunResult result = run(small_config(), {folder / "a.tif"});
  CHECK_FALSE(result.slides[0].done);
  CHECK(result.slides[0].error == "source: the level has 255 x 400 pixels, less than one window of 256 x 256");
}

TEST_CASE("a level that isn't there fails the slide") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(300, 300, 1);
  test::write_test_slide(folder / "a.tif", image);
  Config config = small_config();
  config.input.level = 2;
  CHECK(run(config, {folder / "a.tif"}).slides[0].error == "source: level 2 was asked for, but the slide has 1 level");
}

TEST_CASE("no slides make an empty result") {
  const RunResult result = run(small_config(), {});
  CHECK(result.slides.empty());
  CHECK(result.corpus.windows == 0);
}

TEST_CASE("a stop keeps finished slides and drops the one that was under way") {
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  test::Image image = test::textured_image(600, 1200, 1);
  for (int i = 0; i < 40; ++i) {
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  Config config = small_config();
  config.pipeline.strip_height = 64;
  RunControl control;
  std::atomic<int> seen{0};
  control.on_slide = [&](SlideResult&) {
    if (++seen == 5) control.request_stop();
  };
  const RunResult result = run_pipeline(config, slides, control);
  CHECK(result.interrupted);
  CHECK(result.slides.size() >= 5);
  CHECK(result.slides.size() < slides.size());
  CHECK(result.slides.size() == static_cast<std::size_t>(seen));
  const RunResult undisturbed = run(config, {slides[0]});
  for (const SlideResult& slide : result.slides) {
    CHECK(slide.done);
    CHECK(slide.sums.sum == undisturbed.slides[0].sums.sum);
  }
}

TEST_CASE("progress ends with every slide accounted for") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(600, 1200, 1);
  test::write_test_slide(folder / "a.tif", image);
  RunControl control;
  Progress last;
  control.on_progress = [&](const Progress& progress) { last = progress; };
  run_pipeline(small_config(), {folder / "a.tif", folder / "absent.tif"}, control);
  CHECK(last.slides_total == 2);
  CHECK(last.slides_done == 1);
  CHECK(last.slides_failed == 1);
  CHECK(last.pixels == 600 * 1200);
  CHECK(last.pixels_started == 600 * 1200);
  CHECK(last.bytes_read >= 600 * 1200);
}

TEST_CASE("what this build can't do is refused before anything starts") {
  Config config = small_config();
  RunControl control;
  config.pipeline.backend = Backend::cuda;
  CHECK_THROWS_WITH_AS(run_pipeline(config, {}, control), doctest::Contains("pipeline.backend"), ConfigError);
  config = small_config();
  config.decode.device = DecodeDevice::gpu;
  CHECK_THROWS_WITH_AS(run_pipeline(config, {}, control), doctest::Contains("decode.device"), ConfigError);
  config = small_config();
  config.input.io = InputIo::cufile;
  CHECK_THROWS_WITH_AS(run_pipeline(config, {}, control), doctest::Contains("input.io"), ConfigError);
}
