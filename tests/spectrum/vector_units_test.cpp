// Every vector unit that the machine has, against the definition: the paths that other machines would take.
#include <doctest/doctest.h>
#include <hwy/highway.h>

#include <string>
#include <vector>

#include "spectrum/engine.hpp"
#include "support/engine_runs.hpp"
#include "support/forced_target.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

void check_unit(std::int64_t target, const std::string& name) {
  if ((hwy::SupportedTargets() & target) == 0) {
    report_skipped("this machine has no " + name);
    return;
  }
  const ForcedTarget forced(target);
  const Image image = textured_image(700, 650, 31);
  AnalysisConfig clipping;
  clipping.bins = 300;
  clipping.range = {12.0, 70.0};
  std::vector<AnalysisConfig> configs = {AnalysisConfig(), clipping};
  for (const int window : {16, 32, 64, 128, 512}) {
    configs.emplace_back();
    configs.back().window = window;
    configs.back().stride = window == 512 ? 100 : 2 * window / 3;
  }
  for (const AnalysisConfig& config : configs) {
    const ReferenceResult expected = reference_spectrum(image, config);
    for (const EngineKind kind : {EngineKind::plain, EngineKind::highway}) {
      const auto engine = make_spectrum_engine(config, kind);
      INFO(engine->name());
      const std::string found = engine->name();
      CHECK(found.substr(found.find(' ') + 1) == name);
      const Outcome outcome = run_whole(*engine, image, config);
      CHECK(difference(outcome.sums, outcome.map, expected) == "");
    }
  }
}

}  // namespace

#if HWY_ARCH_X86
TEST_CASE("AVX-512 agrees with the definition (long)") { check_unit(HWY_AVX3, "AVX3"); }
TEST_CASE("AVX2 agrees with the definition (long)") { check_unit(HWY_AVX2, "AVX2"); }
TEST_CASE("SSE4 agrees with the definition (long)") { check_unit(HWY_SSE4, "SSE4"); }
#elif HWY_ARCH_ARM_A64
TEST_CASE("NEON agrees with the definition") { check_unit(HWY_NEON, "NEON"); }
#endif

TEST_CASE("an engine keeps the vector unit that it was made for") {
  const Image image = textured_image(400, 400, 32);
  for (const int window : {64, 256}) {
    AnalysisConfig config;
    config.window = window;
    const auto engine = make_spectrum_engine(config, EngineKind::highway);
    const Outcome before = run_whole(*engine, image, config);
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      const ForcedTarget forced(target);
      CHECK(same_bits(run_whole(*engine, image, config), before));
    }
  }
}
