#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>

#include "stages/pipeline.hpp"
#include "support/gpu.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;

namespace {

Config gpu_config() {
  Config config;
  config.pipeline.backend = Backend::cuda;
  config.pipeline.threads = 4;
  config.output.maps = MapFormat::npy;
  return config;
}

RunResult run(const Config& config, const std::vector<std::string>& slides) {
  RunControl control;
  return run_pipeline(config, slides, control);
}

RunResult run_on_cpu(Config config, const std::vector<std::string>& slides) {
  config.pipeline.backend = Backend::cpu;
  return run(config, slides);
}

/// GPU against CPU: what both may differ by.
void check_close(const SlideResult& gpu, const SlideResult& cpu) {
  REQUIRE_MESSAGE(gpu.done, gpu.error);
  REQUIRE_MESSAGE(cpu.done, cpu.error);
  CHECK(gpu.backend == "cuda");
  CHECK(gpu.sums.windows == cpu.sums.windows);
  CHECK(gpu.sums.values == cpu.sums.values);
  CHECK(gpu.missing_tiles == cpu.missing_tiles);
  CHECK(std::abs(gpu.sums.mean() - cpu.sums.mean()) <= 1e-4);
  CHECK(std::abs(gpu.sums.standard_deviation() - cpu.sums.standard_deviation()) <= 1e-4);
  REQUIRE(gpu.sums.histogram.size() == cpu.sums.histogram.size());
  const auto values = static_cast<double>(cpu.sums.values);
  double distance = 0;
  double cumulative = 0;
  double worst = 0;
  std::uint64_t counted = 0;
  for (std::size_t bin = 0; bin < cpu.sums.histogram.size(); ++bin) {
    counted += gpu.sums.histogram[bin];
    const double off = static_cast<double>(gpu.sums.histogram[bin]) - static_cast<double>(cpu.sums.histogram[bin]);
    distance += std::abs(off);
    cumulative += off;
    worst = std::max(worst, std::abs(cumulative));
  }
  CHECK(counted == gpu.sums.values);
  CHECK(distance / values <= std::max(1e-3, 5 / std::sqrt(values)));
  CHECK(worst / values <= 3e-4);
  REQUIRE(gpu.map.values.size() == cpu.map.values.size());
  float worst_window = 0;
  for (std::size_t i = 0; i < gpu.map.values.size(); ++i) {
    worst_window = std::max(worst_window, std::abs(gpu.map.values[i] - cpu.map.values[i]));
  }
  CHECK(worst_window <= 1e-3F);
}

void check_same(const SlideResult& a, const SlideResult& b) {
  REQUIRE_MESSAGE(a.done, a.error);
  CHECK(a.sums.histogram == b.sums.histogram);
  CHECK(a.sums.windows == b.sums.windows);
  CHECK(a.sums.clipped == b.sums.clipped);
  CHECK(a.sums.sum == b.sums.sum);
  CHECK(a.sums.sum_of_squares == b.sums.sum_of_squares);
  CHECK(a.map.values == b.map.values);
  CHECK(a.missing_tiles == b.missing_tiles);
}

/// Sleeps a random moment in every stage, so that batches complete in another order each time.
void dawdle(void*, const char*, const std::string&, std::size_t) {
  static std::atomic<std::uint32_t> calls{0};
  const std::uint32_t mixed = (calls++ + 1) * 2654435769U;
  std::this_thread::sleep_for(std::chrono::microseconds(mixed >> 21));
}

std::vector<std::string> make_slides(const test::TemporaryFolder& folder, int count) {
  std::vector<std::string> slides;
  constexpr std::uint32_t tile_sizes[][2] = {{64, 64}, {240, 240}, {256, 32}, {48, 112}};
  for (int i = 0; i < count; ++i) {
    test::Image image = test::textured_image(700 + 133 * (i % 5), 1500 + 40 * (i % 3), static_cast<std::uint64_t>(i));
    slides.push_back(folder / ("s" + std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image,
                           {.tile_width = tile_sizes[i % 4][0],
                            .tile_height = tile_sizes[i % 4][1],
                            .coding = static_cast<test::Coding>(i % 3)});
  }
  return slides;
}

}  // namespace

TEST_CASE("real slides give on the GPU what they give on the CPU") {
  if (test::gpus_or_skip() == 0) return;
  const auto root = test::test_data_root();
  if (!root) return test::report_skipped("no real slides: set SLIDESTREAM_TEST_DATA");
  std::vector<std::string> slides;
  for (const auto& entry : std::filesystem::directory_iterator(*root / "data")) {
    if (entry.path().extension() == ".svs") slides.push_back(entry.path().string());
  }
  const Config config = gpu_config();
  const RunResult gpu = run(config, slides);
  const RunResult cpu = run_on_cpu(config, slides);
  REQUIRE(gpu.slides.size() == slides.size());
  for (std::size_t i = 0; i < slides.size(); ++i) check_close(gpu.slides[i], cpu.slides[i]);
}

TEST_CASE("random slides and analyses give on the GPU what they give on the CPU") {
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  std::mt19937 random(11);
  const auto in = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  constexpr int windows[] = {64, 128, 256, 512, 250};
  for (int i = 0; i < 20; ++i) {
    Config config = gpu_config();
    AnalysisConfig& analysis = config.analysis;
    analysis.window = windows[i % 5];
    analysis.stride = i % 3 == 0 ? analysis.window / 2 : in(analysis.window / 4, analysis.window * 3 / 2);
    analysis.smoothing_radius = i % 2 == 0 ? 3 : i % 8;
    analysis.value = static_cast<ValueKind>(i % 7 == 6 ? 1 : 0);
    config.pipeline.strip_height = in(16, 400);
    config.pipeline.queue_depth = in(1, 5);
    config.pipeline.memory_mib = i % 5 == 0 ? 8 : 640;
    test::Image image =
        test::textured_image(analysis.window + in(0, 500), analysis.window + in(0, 500), static_cast<std::uint64_t>(i));
    const std::string path = folder / ("s" + std::to_string(i) + ".tif");
    test::write_test_slide(path, image,
                           {.tile_width = static_cast<std::uint32_t>(16 * in(1, 12)),
                            .tile_height = static_cast<std::uint32_t>(16 * in(1, 12)),
                            .coding = static_cast<test::Coding>(i % 3),
                            .missing = {1}});
    CAPTURE(i);
    const RunResult gpu = run(config, {path});
    const RunResult cpu = run_on_cpu(config, {path});
    REQUIRE(gpu.slides.size() == 1);
    check_close(gpu.slides[0], cpu.slides[0]);
  }
}

TEST_CASE("strips, batches, depth, memory, fragments, devices and order of completion change no bit on the GPU") {
  const std::size_t devices = test::gpus_or_skip();
  if (devices == 0) return;
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = make_slides(folder, 6);
  for (const int window : {256, 64}) {
    Config config = gpu_config();
    config.analysis.window = window;
    config.gpu.devices = {0};
    config.gpu.split_slides = SplitSlides::never;
    const RunResult expected = run(config, slides);
    for (const SlideResult& slide : expected.slides) REQUIRE_MESSAGE(slide.done, slide.error);
    struct Variant {
      int strip_height, batch_strips, queue_depth, memory_mib;
      SplitSlides split = SplitSlides::never;
      bool all_devices = false;
    };
    for (const Variant v :
         {Variant{128, 1, 1, 640}, Variant{256, 2, 2, 640}, Variant{1000, 1, 16, 640}, Variant{1024, 1, 3, 4},
          Variant{4096, 1, 4, 640}, Variant{16, 3, 5, 8}, Variant{128, 1, 4, 640, SplitSlides::always},
          Variant{256, 1, 3, 640, SplitSlides::always, true}, Variant{256, 1, 3, 640, SplitSlides::automatic, true}}) {
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
      RunControl control;
      const RunResult result = run_pipeline_with_faults(config, slides, control, {dawdle, nullptr});
      CHECK(result.devices == static_cast<int>(v.all_devices ? devices : 1));
      REQUIRE(result.slides.size() == slides.size());
      for (std::size_t i = 0; i < slides.size(); ++i) check_same(result.slides[i], expected.slides[i]);
      CHECK(result.corpus.sum == expected.corpus.sum);
      CHECK(result.corpus.histogram == expected.corpus.histogram);
    }
  }
}

TEST_CASE("an exception in any stage of the GPU's lane ends its slide alone and nothing hangs") {
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(400, 700, 9);
  std::vector<std::string> slides;
  for (int i = 0; i < 12; ++i) {
    slides.push_back(folder / ((i % 3 == 1 ? "victim" : "sound") + std::to_string(i) + ".tif"));
    test::write_test_slide(slides.back(), image);
  }
  struct Planned {
    const char* stage;
    std::size_t strip;
    static void fault(void* data, const char* stage, const std::string& path, std::size_t strip) {
      const Planned& planned = *static_cast<const Planned*>(data);
      const bool hit = path.find("victim") != std::string::npos && strip == planned.strip;
      if (hit && std::strcmp(stage, planned.stage) == 0) throw std::runtime_error("planted");
    }
  };
  Config config = gpu_config();
  config.pipeline.strip_height = 128;
  config.pipeline.batch_strips = 1;
  config.pipeline.queue_depth = 6;
  const RunResult expected = run(config, {slides[0]});
  for (const char* stage :
       {"source", "read", "decode", "upload", "decode-gpu", "carry", "compute", "collect", "reduce"}) {
    for (std::size_t strip = 0; strip < 6; ++strip) {
      Planned planned{stage, strip};
      RunControl control;
      const RunResult result = run_pipeline_with_faults(config, slides, control, {Planned::fault, &planned});
      CAPTURE(stage);
      CAPTURE(strip);
      CHECK(result.failure == "");
      REQUIRE(result.slides.size() == slides.size());
      for (const SlideResult& slide : result.slides) {
        const bool victim = slide.path.find("victim") != std::string::npos;
        CHECK(slide.done == !victim);
        if (victim) {
          CHECK(slide.error == std::string(stage) + ": planted");
        } else {
          CHECK(slide.sums.sum == expected.slides[0].sums.sum);
        }
      }
    }
  }
}

TEST_CASE("slides that the GPU decodes and slides that the CPU decodes share a lane") {
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

TEST_CASE("a stop lets what is in flight finish and keeps what is done") {
  if (test::gpus_or_skip() == 0) return;
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = make_slides(folder, 40);
  Config config = gpu_config();
  config.pipeline.strip_height = 128;
  RunControl control;
  std::atomic<int> ended{0};
  control.on_slide = [&](SlideResult&) {
    if (++ended == 5) control.request_stop();
  };
  const RunResult result = run_pipeline(config, slides, control);
  CHECK(result.interrupted);
  CHECK(result.slides.size() >= 5);
  CHECK(result.slides.size() < slides.size());
  for (const SlideResult& slide : result.slides) CHECK_MESSAGE(slide.done, slide.error);
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
  const std::vector<std::string> slides = make_slides(folder, 1);
  config.pipeline.backend = Backend::automatic;
  std::vector<std::string> messages;
  RunControl control;
  control.on_message = [&](const std::string& message) { messages.push_back(message); };
  const RunResult result = run_pipeline(config, slides, control);
  CHECK(result.backend == "cpu");
  CHECK(std::count(messages.begin(), messages.end(), choice.why_none + ": windows are transformed on the CPU") == 1);
}
