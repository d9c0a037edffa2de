// What keeps a run off GPUs, before anybody asks which GPUs there are.
#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/statistic.hpp>
#include <string>
#include <vector>

#include "cuda/spectrum/device_statistics.hpp"
#include "operators/registry.hpp"
#include "planning/operator_needs.hpp"
#include "statistics/radial.hpp"
#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"
#include "synth/synth.hpp"

using namespace slidestream;

namespace {

/// Takes the kernel from the radial profile while it lives. All statistics have one, and their list is fixed.
class WithoutKernel {
 public:
  WithoutKernel() { radial().computes_on_gpus = false; }
  ~WithoutKernel() { radial().computes_on_gpus = true; }
  WithoutKernel(const WithoutKernel&) = delete;
  WithoutKernel& operator=(const WithoutKernel&) = delete;

 private:
  static Statistic& radial() {
    for (const Statistic& statistic : statistics()) {
      if (statistic.name == radial_name) return const_cast<Statistic&>(statistic);
    }
    throw Error("there is no radial profile");
  }
};

std::string why_not(const Config& config) { return why_not_on_gpus(config, operators::make_operators(config)); }

}  // namespace

TEST_CASE("a statistic says that GPUs compute it where their engines have places for its counters") {
  for (const Statistic& statistic : statistics()) {
    INFO(statistic.name);
    Config config;
    config.analysis.statistics = {std::string(statistic.name)};
    CHECK(why_not(config).empty() == statistic.computes_on_gpus);
    if (statistic.computes_on_gpus) {
      CHECK_NOTHROW(cuda::DeviceStatistics(config.analysis));
    } else {
      CHECK_THROWS_AS(cuda::DeviceStatistics(config.analysis), ConfigError);
    }
  }
}

TEST_CASE("a statistic without a kernel keeps a run off GPUs, where the spectrum runs") {
  const WithoutKernel without;
  const std::string why = "analysis.radial is computed on the CPU";
  Config config;
  CHECK(why_not(config).empty());
  config.analysis.statistics = {"split"};
  CHECK(why_not(config).empty());
  config.analysis.statistics = {"split", "radial"};
  CHECK(why_not(config) == why);
  config.operators.run = {"identity"};
  CHECK(why_not(config).empty());
  config.operators.run = {"identity", "spectrum"};
  CHECK(why_not(config) == why);
}

TEST_CASE("\"auto\" takes the CPU for a statistic without a kernel, and \"cuda\" is refused") {
  const WithoutKernel without;
  const test::TemporaryFolder folder;
  const std::string slide = (folder / "a.svs").string();
  write_synthetic_slide(slide, {.width = 300, .height = 280, .seed = 3, .levels = 1});
  Config config = test::config_for(Backend::automatic);
  config.output.dir = (folder / "out").string();
  config.output.maps = MapFormat::none;
  config.analysis.statistics = {"radial"};
  std::vector<std::string> messages;
  RunControl control;
  control.on_message = [&messages](const std::string& message) { messages.push_back(message); };
  const RunResult result = run_pipeline(config, {slide}, control);
  REQUIRE(result.slides.size() == 1);
  CHECK_MESSAGE(result.slides[0].done, result.slides[0].error);
  CHECK(std::ranges::count(messages, "analysis.radial is computed on the CPU: the run computes on the CPU") == 1);
  config.pipeline.backend = Backend::cuda;
  CHECK_THROWS_WITH_AS(run_pipeline(config, {slide}, control),
                       "pipeline.backend = \"cuda\": analysis.radial is computed on the CPU; use \"auto\" or \"cpu\"",
                       ConfigError);
}
