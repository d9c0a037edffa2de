#include "spectrum/engine.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

#include "support/reference.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

struct Outcome {
  SpectrumSums sums;
  WindowMap map;
};

Outcome empty_outcome(const Image& image, const AnalysisConfig& config) {
  const WindowBlock all = all_windows(image, config);
  Outcome outcome;
  outcome.sums.histogram.assign(static_cast<std::size_t>(config.bins), 0);
  outcome.map.columns = all.columns;
  outcome.map.rows = all.rows;
  outcome.map.values.assign(static_cast<std::size_t>(all.columns * all.rows * 2), -1.0F);
  return outcome;
}

Outcome run_whole(const SpectrumEngine& engine, const Image& image, const AnalysisConfig& config) {
  Outcome outcome = empty_outcome(image, config);
  const auto workspace = engine.make_workspace();
  engine.run(outcome.sums, {outcome.map.values.data(), outcome.map.columns}, whole_plane(image),
             all_windows(image, config), *workspace);
  return outcome;
}

AnalysisConfig small_config(int window, int stride, int radius, ValueKind value) {
  AnalysisConfig config;
  config.window = window;
  config.stride = stride;
  config.smoothing_radius = radius;
  config.value = value;
  config.bins = 700;
  if (value == ValueKind::linear) config.range = {0.0, 20000.0};
  return config;
}

Tolerance tolerance_for(const AnalysisConfig& config, const ReferenceResult& expected) {
  Tolerance tolerance;
  // |F| spans many orders of magnitude: its moments are as good as float32 is.
  if (config.value == ValueKind::linear) tolerance.moment = 1e-5 * (1.0 + expected.standard_deviation);
  return tolerance;
}

std::string described(const Image& image, const AnalysisConfig& config) {
  return std::to_string(image.width) + " x " + std::to_string(image.height) + ", window " +
         std::to_string(config.window) + ", stride " + std::to_string(config.stride) + ", radius " +
         std::to_string(config.smoothing_radius) + ", value " + std::to_string(static_cast<int>(config.value));
}

void check_against_reference(const Image& image, const AnalysisConfig& config, EngineKind kind) {
  INFO(described(image, config));
  const auto engine = make_spectrum_engine(config, kind);
  const Outcome outcome = run_whole(*engine, image, config);
  const ReferenceResult expected = reference_spectrum(image, config);
  CHECK(difference(outcome.sums, outcome.map, expected, tolerance_for(config, expected)) == "");
}

}  // namespace

TEST_CASE("the plain engine agrees with the definition") {
  std::mt19937_64 random(11);
  for (const ValueKind value : {ValueKind::log1p_db, ValueKind::db, ValueKind::linear}) {
    for (const int window : {8, 24, 64, 128}) {
      for (const int stride : {window / 2, window, window + 5, 3 * window / 4 + 1}) {
        for (const int radius : {0, 3, 16}) {
          const auto extent = [&] { return window + static_cast<std::int64_t>(random() % (2U * window)); };
          check_against_reference(textured_image(extent(), extent(), random()),
                                  small_config(window, stride, radius, value), EngineKind::fftw);
        }
      }
    }
  }
}

TEST_CASE("the vectorised engine agrees with the definition") {
  std::mt19937_64 random(12);
  for (const int radius : {0, 1, 3}) {
    AnalysisConfig config;
    config.smoothing_radius = radius;
    const auto extent = [&] { return 256 + static_cast<std::int64_t>(random() % 500U); };
    check_against_reference(textured_image(extent(), extent(), random()), config, EngineKind::highway);
  }
}
