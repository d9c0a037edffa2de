#include "cli/dry_run.hpp"

#include <doctest/doctest.h>

using namespace slidestream;
using namespace slidestream::cli;

TEST_CASE("a run that plans more than its control group may have says so") {
  Config config;
  config.pipeline.backend = Backend::cpu;
  config.pipeline.threads = 2;
  config.pipeline.memory_mib = 640;
  CHECK(memory_warning(config, {}).empty());
  GroupLimits limits;
  limits.memory = std::uint64_t{16} << 30;
  CHECK(memory_warning(config, limits).empty());
  limits.memory = std::uint64_t{256} << 20;
  const std::string line = memory_warning(config, limits);
  CHECK(line.starts_with("this run may take "));
  CHECK(line.find("its control group may have 256.0 MiB") != std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
  config.pipeline.memory_mib = 64;
  CHECK(memory_warning(config, limits).empty());
  // What can't be run is said by the run.
  config.operators.run = {"model"};
  CHECK(memory_warning(config, limits).empty());
}
