#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/forecast.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>

#include "compare/distances.hpp"
#include "statistics/split.hpp"
#include "support/gpu.hpp"
#include "support/image_runs.hpp"
#include "support/pipeline_runs.hpp"
#include "support/random_runs.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

using namespace slidestream;
using test::check_same;
using test::run;

namespace {

Config gpu_config() { return test::config_for(Backend::cuda); }

RunResult run_on_cpu(Config config, const std::vector<std::string>& slides) {
  config.pipeline.backend = Backend::cpu;
  return run(config, slides);
}

/// GPU against CPU: what both may differ by.
void check_close(const SlideResult& gpu, const SlideResult& cpu) {
  REQUIRE_MESSAGE(gpu.done, gpu.error);
  REQUIRE_MESSAGE(cpu.done, cpu.error);
  CHECK(gpu.backend == "cuda");
  CHECK(gpu.missing_tiles == cpu.missing_tiles);
  test::Tolerance tolerance;
  tolerance.moment = 1e-4;
  CHECK(test::difference(gpu.sums, gpu.map, test::as_reference(cpu.sums, cpu.map), tolerance) == "");
}

/// The other statistics: the same windows are tissue, and nothing differs by more than 1e-4 dB (percentiles, which
/// values at a bin's edge move, by 2e-3; of histograms the L1 distance, by 1e-3).
void check_statistics_close(const SlideResult& gpu, const SlideResult& cpu, const AnalysisConfig& analysis) {
  for (const StatisticDifference& statistic : statistic_differences(analysis, gpu.sums, analysis, cpu.sums)) {
    for (const NamedDifference& part : statistic.parts) {
      INFO(part.name);
      const bool percentile = part.name.find("_p") != std::string::npos;
      const bool histogram = part.name.ends_with("histograms");
      const double most = part.is_count ? 0.0 : percentile ? 2e-3 : histogram ? 1e-3 : 1e-4;
      if (part.value) CHECK(std::abs(*part.value) <= most);
    }
  }
}

/// None where they aren't.
std::vector<std::string> real_slides() {
  std::vector<std::string> slides;
  const auto root = test::test_data_root();
  if (!root) return slides;
  for (const auto& entry : std::filesystem::directory_iterator(*root / "data")) {
    if (entry.path().extension() == ".svs") slides.push_back(entry.path().string());
  }
  std::ranges::sort(slides);
  return slides;
}

}  // namespace

TEST_CASE("real slides give on the GPU what they give on the CPU") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const std::vector<std::string> slides = real_slides();
  if (slides.empty()) return test::report_skipped("no real slides: set SLIDESTREAM_TEST_DATA");
  Config config = gpu_config();
  config.pipeline.memory_mib = 640;
  config.gpu.memory_fraction = 0.8;
  const RunResult gpu = run(config, slides);
  const RunResult cpu = run_on_cpu(config, slides);
  REQUIRE(gpu.slides.size() == slides.size());
  for (std::size_t i = 0; i < slides.size(); ++i) check_close(gpu.slides[i], cpu.slides[i]);
}

TEST_CASE("the other statistics are on the GPU what they are on the CPU, however work is cut") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::mixed_slides(folder, 4);
  // Of each slide a triangle is tissue.
  for (const std::string& slide : slides) {
    const std::string outlines = R"({"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {},
      "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [400, 0], [0, 700], [0, 0]]]}}]})";
    folder.write(std::filesystem::path(slide).stem().string() + ".geojson", outlines);
  }
  for (const int window : {256, 64}) {
    Config config = gpu_config();
    config.tissue.source = TissueSource::geojson;
    config.analysis.window = window;
    config.analysis.stride = window / 2;
    config.analysis.statistics = {"radial", "split"};
    const RunResult gpu = run(config, slides);
    const RunResult cpu = run_on_cpu(config, slides);
    const PlacedStatistic split = split_of(config.analysis);
    for (std::size_t i = 0; i < slides.size(); ++i) {
      CAPTURE(slides[i]);
      check_close(gpu.slides[i], cpu.slides[i]);
      REQUIRE(gpu.slides[i].sums.counters.size() == statistic_counters(config.analysis));
      check_statistics_close(gpu.slides[i], cpu.slides[i], config.analysis);
    }
    // Of all slides together some windows are tissue and some aren't, or nothing was tried.
    const SpectrumSums tissue = tissue_sums(config.analysis, counters_of(split, gpu.corpus));
    CHECK(tissue.windows > 0);
    CHECK(tissue.windows < gpu.corpus.windows);
    Config cut = config;
    cut.pipeline.strip_height = 128;
    cut.pipeline.batch_strips = 1;
    check_same(run(cut, slides, test::dawdling), gpu);
    // Nothing else changes for them.
    Config without = config;
    without.analysis.statistics.clear();
    RunResult plain = run(without, slides);
    for (SlideResult& slide : plain.slides) {
      CHECK(slide.sums.counters.empty());
      slide.sums.counters = gpu.slides[static_cast<std::size_t>(&slide - plain.slides.data())].sums.counters;
    }
    plain.corpus.counters = gpu.corpus.counters;
    check_same(plain, gpu);
  }
}

TEST_CASE("random slides and analyses give on the GPU what they give on the CPU") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  std::mt19937 random(11);
  // Of 15 each window has had each coding.
  const int usual = test::made_up_gpus() ? test::wide_or_few(20, 15) : 20;
  for (int i = 0; i < test::rounds(usual); ++i) {
    const test::RandomRun made = test::random_run(folder, Backend::cuda, i, random);
    CAPTURE(i);
    const RunResult gpu = run(made.config, {made.slide});
    const RunResult cpu = run_on_cpu(made.config, {made.slide});
    REQUIRE(gpu.slides.size() == 1);
    check_close(gpu.slides[0], cpu.slides[0]);
  }
}

TEST_CASE(
    "strips, batches, depth, memory, fragments, devices and order of completion change no bit on the GPU (long)") {
  const std::size_t devices = test::gpus_or_skip();
  if (devices == 0) return;
  const test::TemporaryFolder folder;
  // One of each coding.
  const std::vector<std::string> slides = test::varied_slides(folder, 3);
  for (const int window : {256, 64}) {
    if (window == 256 && test::rounds(2) < 2) continue;
    Config config = gpu_config();
    config.analysis.window = window;
    config.gpu.devices = {0};
    config.gpu.split_slides = SplitSlides::never;
    const RunResult expected = run(config, slides);
    test::require_done(expected);
    struct Variant {
      int window;  ///< that it has where GPUs are made up, and there isn't time for both
      int strip_height, batch_strips, queue_depth, memory_mib;
      SplitSlides split = SplitSlides::never;
      bool all_devices = false;
    };
    const bool has_all = !test::made_up_gpus() || test::is_wide() || test::rounds(2) < 2;
    for (const Variant v :
         {Variant{256, 128, 1, 1, 32}, Variant{64, 256, 2, 2, 32}, Variant{256, 1000, 1, 16, 32},
          Variant{256, 1024, 1, 3, 4}, Variant{64, 4096, 1, 4, 32}, Variant{64, 16, 3, 5, 8},
          Variant{64, 128, 1, 4, 32, SplitSlides::always}, Variant{256, 256, 1, 3, 32, SplitSlides::always, true},
          Variant{64, 256, 1, 3, 32, SplitSlides::automatic, true}}) {
      if (!has_all && v.window != window) continue;
      config.pipeline.strip_height = v.strip_height;
      config.pipeline.batch_strips = v.batch_strips;
      config.pipeline.queue_depth = v.queue_depth;
      config.pipeline.memory_mib = v.memory_mib;
      config.gpu.split_slides = v.split;
      config.gpu.devices = v.all_devices ? std::vector<int>{} : std::vector<int>{0};
      CAPTURE(window);
      CAPTURE(v.strip_height);
      CAPTURE(v.queue_depth);
      CAPTURE(v.memory_mib);
      const RunResult result = run(config, slides, test::dawdling);
      CHECK(result.devices == static_cast<int>(v.all_devices ? devices : 1));
      check_same(result, expected);
    }
  }
}

TEST_CASE("images are on the GPU what they are on the CPU, to the byte, however work is cut") {
  if (test::left_to_release()) return;
  const std::size_t devices = test::gpus_or_skip();
  if (devices == 0) return;
  const test::TemporaryFolder folder;
  // A made-up GPU encodes JPEG a block after the other, and sanitizers make that ten times as slow.
  const bool is_small = test::rounds(4) < 4 || (test::made_up_gpus() && !test::is_wide());
  std::vector<std::string> stained;
  if (!is_small) stained = real_slides();
  stained.push_back(folder / "made.svs");
  write_synthetic_slide(stained.back(), {.width = is_small ? 1100 : 3000, .height = is_small ? 700 : 2000});
  std::vector<std::string> all = test::varied_slides(folder, is_small ? 2 : 4);
  all.insert(all.end(), stained.begin(), stained.end());
  const std::vector<std::vector<std::string>> runs = {
      {"identity"}, {"sobel"}, {"stain", "tissue", "gaussian"}, {"spectrum", "stain", "sobel"}};
  int count = 0;
  for (const std::vector<std::string>& operators : runs) {
    const bool stains = std::ranges::count(operators, "stain") > 0;
    const std::vector<std::string>& slides = stains ? stained : all;
    const auto run_as = [&](Backend backend, int strip_height, int batch_strips, std::vector<int> on) {
      Config config = test::config_for(backend);
      config.operators.run = operators;
      config.output.maps = MapFormat::none;
      config.output.dir = folder / ("out" + std::to_string(count));
      config.image.format = ImageFormat::ome_tiff;
      // By turns as pixels and as what the GPU encodes.
      config.image.compression = count / 3 % 2 == 0 ? ImageCompression::none : ImageCompression::jpeg;
      config.pipeline.memory_mib = 256;
      config.gpu.memory_fraction = 0.8;
      config.pipeline.strip_height = strip_height;
      config.pipeline.batch_strips = batch_strips;
      config.gpu.devices = std::move(on);
      RunResult result = run(config, slides);
      test::require_done(result);
      REQUIRE(result.slides.size() == slides.size());
      CHECK(result.backend == (backend == Backend::cpu ? "cpu" : "cuda"));
      std::filesystem::remove_all(config.output.dir);
      ++count;
      return result;
    };
    const RunResult expected = run_as(Backend::cpu, 1024, 0, {});
    for (const RunResult& found : {run_as(Backend::cuda, 1024, 0, {}), run_as(Backend::cuda, 300, 1, {0})}) {
      test::check_same_files(found, expected);
    }
  }
}

TEST_CASE("a run whose operators read no pixels of the level computes on the CPU") {
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  const std::string slide = folder / "made.svs";
  write_synthetic_slide(slide, {.width = 1500, .height = 1000});
  Config config = gpu_config();
  config.operators.run = {"tissue"};
  config.image.format = ImageFormat::ome_tiff;
  config.output.dir = folder / "out";
  CHECK_THROWS_WITH_AS(run(config, {slide}), doctest::Contains("pipeline.backend = \"cuda\": "), ConfigError);
  config.pipeline.backend = Backend::automatic;
  const RunResult result = run(config, {slide});
  test::require_done(result);
  CHECK(result.backend == "cpu");
  CHECK(forecast_run(config, {slide}).backend == "cpu");
}

TEST_CASE("whole levels on the GPU give what strips give, and what doesn't fit is told in one line") {
  if (test::left_to_release()) return;
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::varied_slides(folder, 5);
  Config config = gpu_config();
  config.pipeline.memory_mib = 128;
  config.gpu.memory_fraction = 0.5;
  const RunResult expected = run(config, slides);
  test::require_done(expected);
  config.pipeline.residency = Residency::whole;
  config.gpu.split_slides = SplitSlides::always;
  config.pipeline.strip_height = 64;
  config.pipeline.batch_strips = 1;
  const RunResult found = run(config, slides);
  check_same(found, expected);
  const auto source = std::ranges::find(found.stages, "source", &StageReport::name);
  REQUIRE(source != found.stages.end());
  CHECK(source->items == slides.size());
  // A row of tiles fits, and not all of them.
  config.pipeline.memory_mib = 8;
  std::size_t refused = 0;
  for (const SlideResult& slide : run(config, slides).slides) {
    if (slide.done) continue;
    CHECK_MESSAGE(slide.error.find("pipeline.memory_mib") != std::string::npos, slide.error);
    if (slide.error.find("source: pipeline.residency = \"whole\": the level's ") == 0) ++refused;
  }
  CHECK(refused > 0);
  config.pipeline.backend = Backend::cpu;
  CHECK_THROWS_WITH_AS(run(config, slides), doctest::Contains("pipeline.residency = \"whole\": "), ConfigError);
}

TEST_CASE("slides that the GPU decodes and slides that the CPU decodes share a lane (long)") {
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  std::vector<std::string> slides;
  std::vector<SlideResult> expected;
  for (int i = 0; i < 30; ++i) {
    // Uncompressed first, then LZW, then both by turns: each waits for the other at some time.
    const test::Coding coding = i < 10                 ? test::Coding::none
                                : i < 20 || i % 2 == 0 ? test::Coding::lzw
                                                       : test::Coding::jpeg;
    test::Image image = test::textured_image(300 + 20 * (i % 4), 500, static_cast<std::uint64_t>(i));
    slides.push_back(folder / (std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image, {.coding = coding});
  }
  Config config = gpu_config();
  config.pipeline.strip_height = 64;
  config.pipeline.batch_strips = 1;
  for (const int depth : {1, 2, 5}) {
    CAPTURE(depth);
    config.pipeline.queue_depth = depth;
    const RunResult result = run(config, slides);
    REQUIRE(result.slides.size() == slides.size());
    if (expected.empty()) expected = result.slides;
    for (std::size_t i = 0; i < slides.size(); ++i) {
      CHECK(result.slides[i].path == slides[i]);
      check_same(result.slides[i], expected[i]);
    }
  }
}

TEST_CASE("memory that the device hasn't got is refused before anything starts, with the key to turn") {
  if (test::gpus_or_skip() == 0) return;
  Config config = gpu_config();
  config.pipeline.memory_mib = 4 << 20;  // 4 TiB
  CHECK_THROWS_WITH_AS(check_runnable(config), doctest::Contains("lower pipeline.memory_mib (now 4194304)"),
                       ConfigError);
  config = gpu_config();
  config.gpu.devices = {77};
  CHECK_THROWS_WITH_AS(check_runnable(config), doctest::Contains("gpu.devices: 77 was asked for"), ConfigError);
}

TEST_CASE("without a GPU the backend cuda is refused in one line, and auto falls back with one") {
  const GpuChoice choice = choose_gpus({});
  if (!choice.devices.empty()) return test::report_skipped("there is a GPU");
  Config config;
  config.pipeline.backend = Backend::cuda;
  CHECK_THROWS_WITH_AS(check_runnable(config),
                       ("pipeline.backend = \"cuda\": " + choice.why_none + "; use \"auto\" or \"cpu\"").c_str(),
                       ConfigError);
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::varied_slides(folder, 1);
  config.pipeline.backend = Backend::automatic;
  std::vector<std::string> messages;
  RunControl control;
  control.on_message = [&](const std::string& message) { messages.push_back(message); };
  const RunResult result = run_pipeline(config, slides, control);
  CHECK(result.backend == "cpu");
  CHECK(std::count(messages.begin(), messages.end(), choice.why_none + ": the run computes on the CPU") == 1);
}
