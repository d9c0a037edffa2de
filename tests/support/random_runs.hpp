#pragma once

#include <random>
#include <string>

#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"

/// \file
/// Random slides with random analyses of them.

namespace slidestream::test {

struct RandomRun {
  Config config;
  Image image;  ///< what the slide decodes to
  std::string slide;
};

/// The `i`-th of a row: kinds of windows, codings and memory take turns, the rest is chance. One tile is missing.
inline RandomRun random_run(const TemporaryFolder& folder, Backend backend, int i, std::mt19937& random) {
  const auto in = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  constexpr int windows[] = {64, 128, 256, 512, 250};
  RandomRun run;
  run.config = config_for(backend);
  AnalysisConfig& analysis = run.config.analysis;
  analysis.window = windows[i % 5];
  analysis.stride = i % 3 == 0 ? analysis.window / 2 : in(analysis.window / 4, analysis.window * 3 / 2);
  analysis.smoothing_radius = i % 2 == 0 ? 3 : i % 8;
  analysis.value = i % 7 == 6 ? ValueKind::db : ValueKind::log1p_db;
  PipelineConfig& pipeline = run.config.pipeline;
  pipeline.strip_height = in(16, 400);
  pipeline.queue_depth = in(1, 5);
  pipeline.memory_mib = i % 5 == 0 ? 8 : 32;
  run.image = textured_image(analysis.window + in(0, 500), analysis.window + in(0, 500), static_cast<std::uint64_t>(i));
  run.slide = folder / ("s" + std::to_string(i) + ".tif");
  write_test_slide(run.slide, run.image,
                   {.tile_width = static_cast<std::uint32_t>(16 * in(1, 12)),
                    .tile_height = static_cast<std::uint32_t>(16 * in(1, 12)),
                    .coding = static_cast<Coding>(i % 3),
                    .missing = {1}});
  return run;
}

}  // namespace slidestream::test
