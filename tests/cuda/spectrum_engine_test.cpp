#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <slidestream/error.hpp>

#include "cuda/spectrum_runs.hpp"
#include "statistics/split.hpp"

using namespace slidestream;
using namespace slidestream::test;
using cuda::make_window_engine;
using cuda::WindowEngineKind;

namespace {

constexpr auto plain = Engine::cufft;
constexpr auto fused = Engine::fused;
constexpr auto portable = Engine::portable;

void check_against_definition(const Image& image, const AnalysisConfig& config, std::initializer_list<Engine> engines) {
  const ReferenceResult expected = reference_spectrum(image, config);
  for (const Engine which : engines) {
    const auto engine = make_engine(config, which);
    INFO(engine->name(), ": ", described(image, config));
    const Outcome outcome = run_whole(*engine, image, config);
    CHECK(difference(outcome.sums, outcome.map, expected, tolerance_for(config, expected)) == "");
  }
}

/// Mean and deviation within 1e-4 dB of the CPU's plain engine, and its histogram.
void check_against_cpu(const Image& image, const AnalysisConfig& config, std::initializer_list<Engine> engines) {
  const Outcome on_cpu = run_whole(*make_spectrum_engine(config, EngineKind::plain), image, config);
  const ReferenceResult expected = as_reference(on_cpu.sums, on_cpu.map);
  Tolerance tolerance = tolerance_for(config, expected);
  // Of the whole; a single tiny window may hold a coefficient that float32 can't tell from zero.
  if (config.value != ValueKind::linear && config.window >= 64) tolerance.moment = tolerance.window_moment = 1e-4;
  // Values at a bin's edge fall either way by chance, and there are more edges.
  tolerance.histogram *= std::max(1.0, config.bins / 1500.0);
  for (const Engine which : engines) {
    const auto engine = make_engine(config, which);
    INFO(engine->name(), ": ", described(image, config));
    const Outcome outcome = run_whole(*engine, image, config);
    CHECK(difference(outcome.sums, outcome.map, expected, tolerance) == "");
  }
}

}  // namespace

TEST_CASE("the cuFFT engine agrees with the definition (large)") {
  if (!gpu_is_there()) return;
  std::mt19937_64 random(11);
  for (const ValueKind value : {ValueKind::log1p_db, ValueKind::db, ValueKind::linear}) {
    for (const int window : {8, 24, 64}) {
      for (const int stride : {window / 2, window + 5, 3 * window / 4 + 1}) {
        for (const int radius : {0, 3, 16}) {
          const auto extent = [&] { return window + static_cast<std::int64_t>(random() % (2U * window)); };
          check_against_definition(textured_image(extent(), extent(), random()),
                                   analysis(window, stride, radius, value), {plain});
        }
      }
    }
  }
}

TEST_CASE("the cuFFT engine agrees with the definition on one image of each kind") {
  if (!gpu_is_there()) return;
  check_against_definition(textured_image(101, 97, 1), analysis(64, 32, 3, ValueKind::log1p_db), {plain});
  check_against_definition(textured_image(33, 41, 2), analysis(10, 7, 5, ValueKind::db), {plain});
  check_against_definition(textured_image(40, 30, 2), analysis(8, 8, 1, ValueKind::linear), {plain});
}

TEST_CASE("the cuFFT engine agrees with the CPU at every window, stride, radius and number of bins (large)") {
  if (!gpu_is_there()) return;
  check_against_cpu(textured_image(1531, 1100, 3), analysis(250, 61, 3, ValueKind::log1p_db), {plain});
  check_against_cpu(textured_image(1030, 777, 4), analysis(256, 128, 3, ValueKind::log1p_db), {plain});
  check_against_cpu(textured_image(1027, 613, 5), analysis(512, 101, 5, ValueKind::db), {plain});
  check_against_cpu(textured_image(4500, 4103, 6), analysis(4096, 400, 2, ValueKind::log1p_db), {plain});
  check_against_cpu(textured_image(301, 41, 7), analysis(10, 100, 0, ValueKind::log1p_db), {plain});
  check_against_cpu(textured_image(97, 31, 8), analysis(8, 1, 16, ValueKind::log1p_db), {plain});
  check_against_cpu(textured_image(8, 8, 9), analysis(8, 1, 16, ValueKind::log1p_db), {plain});
  check_against_cpu(textured_image(1001, 999, 10), analysis(8, 1, 1, ValueKind::log1p_db), {plain});  // many batches
  for (const int bins : {1, 3000, 12288, 12289, 65536}) {
    AnalysisConfig config = analysis(64, 32, 3, ValueKind::log1p_db);
    config.bins = bins;
    config.range = {0.0, 150.0};
    check_against_cpu(textured_image(900, 700, 11), config, {plain});
  }
}

TEST_CASE("the fused engine agrees with the definition (many)") {
  if (!gpu_is_there()) return;
  check_against_definition(textured_image(256, 256, 9), AnalysisConfig(), {fused});
  check_against_definition(textured_image(517, 389, 10), AnalysisConfig(), {fused});
}

TEST_CASE("the fused engine's portable build agrees with the definition") {
  if (!gpu_is_there()) return;
  check_against_definition(textured_image(256, 256, 9), AnalysisConfig(), {portable});
  check_against_definition(textured_image(517, 389, 10), AnalysisConfig(), {portable});
}

TEST_CASE("rings and the tissue's histogram are the CPU's, on every engine") {
  if (!gpu_is_there()) return;
  const auto check = [](AnalysisConfig config, const Image& image, std::initializer_list<Engine> engines) {
    config.statistics = {"radial", "split"};
    const PlacedStatistic radial = placed_statistics(config).at(0);
    const PlacedStatistic split = split_of(config);
    // The CPU's, a window at a time.
    const auto on_cpu = make_spectrum_engine(config);
    const auto workspace = on_cpu->make_workspace();
    const WindowBlock all = all_windows(image, config);
    const std::vector<std::uint8_t> tissue = some_tissue(all);
    SpectrumSums expected = empty_sums(config);
    SpectrumSums of_tissue = empty_sums(config);
    for (std::int64_t i = 0; i < all.columns * all.rows; ++i) {
      on_cpu->run(tissue[static_cast<std::size_t>(i)] != 0 ? of_tissue : expected, {}, whole_plane(image),
                  {i % all.columns, 1, i / all.columns, 1}, *workspace);
    }
    expected += of_tissue;
    const std::vector<double> profile = findings_of(radial, config, expected).series.at(0).values;
    for (const Engine which : engines) {
      const auto engine = make_engine(config, which);
      INFO(engine->name(), ": ", described(image, config));
      SpectrumSums found = run_whole(*engine, image, config).sums;
      REQUIRE(found.counters.size() == statistic_counters(config));
      const std::vector<double> found_profile = findings_of(radial, config, found).series.at(0).values;
      for (std::size_t ring = 0; ring < profile.size(); ++ring) {
        INFO("ring ", ring);
        const double tolerance = config.value == ValueKind::linear ? 1e-3 * (1.0 + profile[ring]) : 1e-4;
        CHECK(std::abs(found_profile[ring] - profile[ring]) <= tolerance);
      }
      const SpectrumSums found_tissue = tissue_sums(config, counters_of(split, found));
      std::uint64_t off = 0;
      std::uint64_t count = 0;
      for (std::size_t bin = 0; bin < found_tissue.histogram.size(); ++bin) {
        const std::uint64_t a = found_tissue.histogram[bin];
        const std::uint64_t b = of_tissue.histogram[bin];
        off += a > b ? a - b : b - a;
        count += b;
        CHECK(a <= found.histogram[bin]);
      }
      CHECK(static_cast<double>(off) <= 2e-3 * static_cast<double>(count));
      // What it makes besides changes nothing.
      AnalysisConfig without = config;
      without.statistics.clear();
      const Outcome plain_outcome = run_whole(*make_engine(without, which), image, without);
      found.counters.clear();
      CHECK(found == plain_outcome.sums);
    }
  };
  check(AnalysisConfig(), textured_image(1300, 1100, 30), {plain, fused, portable});
  check(analysis(64, 32, 3, ValueKind::db), textured_image(400, 300, 31), {plain});
  check(analysis(30, 11, 0, ValueKind::linear), textured_image(300, 200, 32), {plain});
  check(analysis(1024, 512, 3, ValueKind::log1p_db), textured_image(2300, 2100, 33), {plain});
}

TEST_CASE("the fused engine agrees with the CPU and with cuFFT at every size and radius (large)") {
  if (!gpu_is_there()) return;
  std::mt19937_64 random(12);
  for (const int radius : {0, 1, 2, 3, 4, 16}) {
    AnalysisConfig config;
    config.smoothing_radius = radius;
    const auto extent = [&] { return 256 + static_cast<std::int64_t>(random() % 900U); };
    check_against_cpu(textured_image(extent(), extent(), random()), config, {plain, fused, portable});
  }
  // More columns than teams of thread blocks: whole columns and left over ones.
  check_against_cpu(textured_image(18003, 650, 14), AnalysisConfig(), {plain, fused, portable});
  check_against_cpu(textured_image(300, 9001, 15), AnalysisConfig(), {plain, fused, portable});
}

TEST_CASE("the engine follows the configuration, and says what it can't do") {
  if (!gpu_is_there()) return;
  CHECK(std::string(make_window_engine(AnalysisConfig())->name()).substr(0, 5) == "fused");
  const auto slower = [](auto change) {
    AnalysisConfig config;
    change(config);
    CHECK(std::string(make_window_engine(config)->name()).substr(0, 5) == "cufft");
    CHECK_THROWS_AS(make_window_engine(config, WindowEngineKind::fused), ConfigError);
  };
  slower([](AnalysisConfig& config) { config.window = 128; });
  slower([](AnalysisConfig& config) { config.stride = 64; });
  slower([](AnalysisConfig& config) { config.value = ValueKind::db; });
  slower([](AnalysisConfig& config) { config.bins = 65536; });
  slower([](AnalysisConfig& config) { config.range = {-0.05, 149.95}; });
  slower([](AnalysisConfig& config) { config.range = {0.0, 1.0}; });
}

TEST_CASE("any range is divided, and what lies outside is counted (large)") {
  if (!gpu_is_there()) return;
  const Image image = textured_image(500, 400, 13);
  for (const auto& [bins, range] : divisions()) {
    AnalysisConfig config;
    config.bins = bins;
    config.range = range;
    check_against_cpu(image, config, {plain});
    if (cuda::fused_window_engine_takes(config)) check_against_cpu(image, config, {fused});
    if (bins < 1500 && cuda::fused_window_engine_takes(config)) check_against_cpu(image, config, {portable});
  }
}

TEST_CASE("constant images and single points come out right (large)") {
  if (!gpu_is_there()) return;
  for (const Image& image : plain_images(400, 272)) {
    for (const int radius : {0, 3}) {
      AnalysisConfig config;
      config.smoothing_radius = radius;
      INFO("grey ", static_cast<int>(image.pixels[1]), ", radius ", radius);
      check_against_definition(image, config, {plain, fused, portable});
    }
  }
}

TEST_CASE("coefficients that are 0 are left small (large)") {
  if (!gpu_is_there()) return;
  for (const int radius : {0, 3}) {
    AnalysisConfig config;
    config.smoothing_radius = radius;
    for (const auto& named : stepped_images(256)) {
      const auto& image = named.second;
      const ReferenceResult expected = reference_spectrum(image, config);
      const Outcome on_cpu = run_whole(*make_spectrum_engine(config), image, config);
      for (const Engine which : {plain, fused, portable}) {
        const auto engine = make_engine(config, which);
        INFO(engine->name(), ": ", named.first, ", ", described(image, config));
        const Outcome outcome = run_whole(*engine, image, config);
        const Tolerance tolerance = tolerance_for_zeros(config);
        CHECK(difference(outcome.sums, outcome.map, expected, tolerance) == "");
        CHECK(difference(outcome.sums, outcome.map, as_reference(on_cpu.sums, on_cpu.map), tolerance) == "");
      }
    }
  }
}

TEST_CASE("many windows of one value don't overflow the counters (large)") {
  if (!gpu_is_there()) return;
  const Image image{256 + 128 * 40, 256 + 128 * 60,
                    std::vector<std::uint8_t>((256 + 128 * 40) * (256 + 128 * 60), 243)};
  const AnalysisConfig config;
  for (const Engine which : {plain, fused, portable}) {
    const Outcome outcome = run_whole(*make_engine(config, which), image, config);
    CHECK(outcome.sums.windows == 41 * 61);
    CHECK(outcome.sums.histogram[0] == 41 * 61 * 65535ULL);
    CHECK(std::accumulate(outcome.sums.histogram.begin(), outcome.sums.histogram.end(), std::uint64_t{0}) ==
          outcome.sums.values);
  }
}

TEST_CASE("no windows give zeros, and scratch that is too small is refused (many)") {
  if (!gpu_is_there()) return;
  const Image image = textured_image(256, 256, 1);
  AnalysisConfig config;
  for (const Engine which : {plain, fused, portable}) {
    const auto engine = make_engine(config, which);
    Outcome outcome = empty_outcome(image, config);
    const DeviceImage on_device(image, whole(image));
    run_block(outcome, *engine, on_device.plane(), {0, 0, 0, 1}, config);
    run_block(outcome, *engine, on_device.plane(), {0, 1, 0, 0}, config);
    CHECK(outcome.sums.values == 0);
    CHECK(outcome.sums.clipped == 0);
    CHECK(std::accumulate(outcome.sums.histogram.begin(), outcome.sums.histogram.end(), std::uint64_t{0}) == 0);

    const DeviceBuffer sums((static_cast<std::size_t>(config.bins) + 3) * sizeof(std::uint64_t));
    const auto histogram = sums.as<std::uint64_t>();
    CHECK_THROWS_AS(engine->enqueue({histogram, histogram + config.bins, reinterpret_cast<double*>(histogram) + 1501},
                                    on_device.plane(), {0, 1, 0, 1}, {}, nullptr),
                    std::invalid_argument);
  }
}
