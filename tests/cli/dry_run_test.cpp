#include "cli/dry_run.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "synth/synth.hpp"

using namespace slidestream;
using namespace slidestream::cli;

TEST_CASE("a run that plans more than its control group may have says so") {
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = 2;
  config.pipeline.memory_mib = 640;
  CHECK(memory_warning(config, {}, {}).empty());
  GroupLimits limits;
  limits.memory = std::uint64_t{16} << 30;
  CHECK(memory_warning(config, {}, limits).empty());
  limits.memory = std::uint64_t{256} << 20;
  const std::string line = memory_warning(config, {}, limits);
  CHECK(line.starts_with("this run may take "));
  CHECK(line.find("its control group may have 256.0 MiB") != std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
  config.pipeline.memory_mib = 64;
  CHECK(memory_warning(config, {}, limits).empty());
  // What can't be run is said by the run.
  config.operators.run = {"model"};
  CHECK(memory_warning(config, {}, limits).empty());
}

TEST_CASE("a warning before a run has the number of the dry run") {
  const test::TemporaryFolder folder;
  SynthOptions options;
  options.width = 1024;
  options.height = 768;
  const std::string slide = (folder.path() / "slide.svs").string();
  write_synthetic_slide(slide, options);
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = 2;
  config.operators.run = {"tissue"};
  GroupLimits limits;
  limits.memory = std::uint64_t{256} << 20;
  const RunForecast forecast = forecast_run(config, {slide});
  const std::string planned = memory_text(forecast.host_bytes());
  const std::string at_least = memory_text(forecast_run(config, {}).host_bytes());
  REQUIRE(planned != at_least);
  CHECK(memory_warning(forecast, limits).starts_with("this run may take " + planned + " of memory, and "));
  CHECK(memory_warning(config, {slide}, limits) == memory_warning(forecast, limits));
  CHECK(forecast_text(config, forecast, 120, {}).find(planned + " at most, besides the program and its threads: ") !=
        std::string::npos);
  // More slides than are looked at before a run.
  const std::vector<std::string> many(1000, slide);
  CHECK(memory_warning(config, many, limits).starts_with("this run may take more than " + at_least + " of memory, "));
}
