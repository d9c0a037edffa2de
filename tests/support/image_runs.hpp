#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "support/pipeline_runs.hpp"
#include "support/temporary_folder.hpp"

/// \file
/// Runs that make images, and their files beside those of another run.

namespace slidestream::test {

/// Images of the operators in many batches; slots that fit a GPU which others use, too.
inline Config config_of_gpu_images(const TemporaryFolder& folder, Backend backend,
                                   const std::vector<std::string>& operators) {
  Config config = config_for(backend);
  config.operators.run = operators;
  config.output.dir = folder / "out";
  config.image.format = ImageFormat::ome_tiff;
  config.pipeline.strip_height = 100;
  config.pipeline.batch_strips = 1;
  config.gpu.memory_fraction = 0.3;
  return config;
}

/// A run in an empty folder, whose slides are all done.
inline RunResult run_anew(const Config& config, const std::vector<std::string>& slides) {
  std::filesystem::remove_all(config.output.dir);
  RunResult result = run(config, slides);
  require_done(result);
  REQUIRE(result.slides.size() == slides.size());
  return result;
}

/// Files of the same names and bytes.
inline void check_same_files(const SlideResult& found, const SlideResult& expected) {
  REQUIRE(found.artifacts.size() == expected.artifacts.size());
  for (std::size_t i = 0; i < expected.artifacts.size(); ++i) {
    CHECK(found.artifacts[i].file == expected.artifacts[i].file);
    INFO(expected.artifacts[i].file);
    CHECK(found.artifacts[i].digest == expected.artifacts[i].digest);
  }
}

inline void check_same_files(const RunResult& found, const RunResult& expected) {
  REQUIRE(found.slides.size() == expected.slides.size());
  for (std::size_t i = 0; i < expected.slides.size(); ++i) check_same_files(found.slides[i], expected.slides[i]);
}

}  // namespace slidestream::test
