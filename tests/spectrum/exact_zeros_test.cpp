// Images most of whose coefficients are 0 in exact arithmetic, where float32's error shows whole.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "spectrum/engine.hpp"
#include "support/engine_cases.hpp"
#include "support/engine_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

void check_family(int window, int radius, std::initializer_list<EngineKind> kinds) {
  AnalysisConfig config;
  config.window = window;
  config.stride = window / 2;
  config.smoothing_radius = radius;
  double worst = 0.0;
  for (const auto& stepped : stepped_images(window)) {
    const auto& name = stepped.first;
    const auto& image = stepped.second;
    const ReferenceResult expected = reference_spectrum(image, config);
    for (const EngineKind kind : kinds) {
      const auto engine = make_spectrum_engine(config, kind);
      INFO(engine->name(), ": ", name, ", ", described(image, config));
      const Outcome outcome = run_whole(*engine, image, config);
      CHECK(difference(outcome.sums, outcome.map, expected, tolerance_for_zeros(config)) == "");
      worst = std::max(worst, std::abs(outcome.sums.mean() - expected.mean));
    }
  }
  // The images are hard: most others are exact to 1e-5 dB.
  CHECK(worst > (radius == 0 ? 2e-5 * window : 1e-4));
}

}  // namespace

TEST_CASE("coefficients that are 0 are left small: windows of 64") {
  for (const int radius : {0, 3}) check_family(64, radius, {EngineKind::highway, EngineKind::plain});
}

TEST_CASE("coefficients that are 0 are left small: windows of 256 (long)") {
  for (const int radius : {0, 3}) check_family(256, radius, {EngineKind::highway, EngineKind::plain});
}

TEST_CASE("coefficients that are 0 are left small: windows of 512 (long)") {
  check_family(512, 0, {EngineKind::highway});
}
