// A window's results depend on its pixels alone: the same bits however a slide is cut into planes and blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cuda/spectrum_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

void check_cuts(const AnalysisConfig& config, Engine which, std::int64_t width, std::int64_t height, int rounds) {
  const Image image = textured_image(width, height, 21);
  const auto engine = make_engine(config, which);
  INFO(engine->name(), ": ", described(image, config));
  const Outcome whole_run = run_whole(*engine, image, config);
  CHECK(same_bits(whole_run, run_whole(*engine, image, config)));
  std::mt19937_64 random(5);
  for (int round = 0; round < rounds; ++round) {
    Outcome cut = empty_outcome(image, config);
    for (const WindowBlock& block : random_blocks(all_windows(image, config), random)) {
      const std::int64_t shift = static_cast<std::int64_t>(random() % 5U);
      const DeviceImage part(image, needed(image, config, block), shift);
      run_block(cut, *engine, part.plane(), block, config);
    }
    CHECK(same_bits(whole_run, cut));
  }
}

}  // namespace

// Cases marked (large) or (many) are left out under the sanitizer's race checker: cuFFT's batches take it too long, and
// it doesn't know barriers that some threads only arrive at, as in the build for Hopper.

TEST_CASE("the cuFFT engine gives the same bits for every cut (many)") {
  if (!gpu_is_there()) return;
  AnalysisConfig config;
  config.window = 64;
  config.stride = 50;
  check_cuts(config, Engine::cufft, 311, 189, 1);
}

TEST_CASE("the cuFFT engine gives the same bits for every cut (large)") {
  if (!gpu_is_there()) return;
  for (const int radius : {0, 2, 3, 9}) {
    for (const int stride : {32, 50, 71}) {
      AnalysisConfig config;
      config.window = 64;
      config.stride = stride;
      config.smoothing_radius = radius;
      check_cuts(config, Engine::cufft, 411, 389, 2);
    }
  }
  AnalysisConfig config;
  check_cuts(config, Engine::cufft, 1031, 1290, 4);
  config.window = 250;
  config.stride = 33;
  config.value = ValueKind::db;
  check_cuts(config, Engine::cufft, 1800, 1001, 2);  // more windows than a batch holds
  config.window = 8;
  config.stride = 20;
  config.value = ValueKind::linear;
  check_cuts(config, Engine::cufft, 97, 101, 4);
}

TEST_CASE("the fused engine gives the same bits for every cut (many)") {
  if (!gpu_is_there()) return;
  check_cuts(AnalysisConfig(), Engine::fused, 531, 520, 1);
}

TEST_CASE("the fused engine's portable build gives the same bits for every cut") {
  if (!gpu_is_there()) return;
  check_cuts(AnalysisConfig(), Engine::portable, 531, 520, 1);
}

TEST_CASE("the fused engine gives the same bits for every cut (large)") {
  if (!gpu_is_there()) return;
  for (const Engine engine : {Engine::fused, Engine::portable}) {
    for (const int radius : {0, 2, 3, 9}) {
      AnalysisConfig config;
      config.smoothing_radius = radius;
      check_cuts(config, engine, 1031, 1290, 4);
      config.bins = 120;
      config.range = {20.0, 80.0};
      check_cuts(config, engine, 1024, 700, 4);
    }
    check_cuts(AnalysisConfig(), engine, 10007, 3000, 4);  // more columns than teams of thread blocks
    check_cuts(AnalysisConfig(), engine, 390, 12000, 4);
  }
}
