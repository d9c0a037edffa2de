// A window's results depend on its pixels alone: the same bits however a slide is cut into planes and blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "spectrum/engine.hpp"
#include "support/engine_cases.hpp"
#include "support/engine_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// The part of an image that a block of windows needs and not a pixel more, in memory of its own.
class Cutout {
 public:
  Cutout(const Image& image, const AnalysisConfig& config, const WindowBlock& block) {
    const auto [left, top, right, bottom] = needed(image, config, block);
    const std::size_t width = static_cast<std::size_t>(right - left);
    const std::size_t height = static_cast<std::size_t>(bottom - top);
    pixels_ = std::make_unique<std::uint8_t[]>(width * height);
    for (std::size_t y = 0; y < height; ++y) {
      const auto row = image.pixels.begin() + (top + static_cast<std::int64_t>(y)) * image.width + left;
      std::copy(row, row + static_cast<std::ptrdiff_t>(width), pixels_.get() + y * width);
    }
    plane_ = {pixels_.get(), right - left, left, top, right - left, bottom - top, image.width, image.height};
  }

  const LuminancePlane& plane() const { return plane_; }

 private:
  std::unique_ptr<std::uint8_t[]> pixels_;  // exactly as large as promised: sanitizers see a step beyond
  LuminancePlane plane_;
};

void check_cuts(const AnalysisConfig& config, EngineKind kind, std::int64_t width, std::int64_t height) {
  const Image image = textured_image(width, height, 21);
  INFO(described(image, config));
  const auto engine = make_spectrum_engine(config, kind);
  const Outcome whole = run_whole(*engine, image, config);
  std::mt19937_64 random(5);
  for (int round = 0; round < 4; ++round) {
    Outcome cut = empty_outcome(image, config);
    const auto workspace = engine->make_workspace();
    for (const WindowBlock& block : random_blocks(all_windows(image, config), random)) {
      const Cutout cutout(image, config, block);
      SpectrumSums part = empty_sums(config);
      engine->run(part, {cut.map.values.data(), cut.map.columns}, cutout.plane(), block, *workspace);
      cut.sums += part;
    }
    CHECK(same_bits(whole, cut));
  }
}

}  // namespace

TEST_CASE("the plain engine gives the same bits for every cut (long)") {
  for (const int radius : {0, 3, 9}) {
    for (const int stride : {16, 32, 50, 70}) {
      AnalysisConfig config;
      config.window = 64;
      config.stride = stride;
      config.smoothing_radius = radius;
      check_cuts(config, EngineKind::plain, 411, 389);
    }
  }
  AnalysisConfig tiny;
  tiny.window = 8;
  tiny.stride = 1;
  check_cuts(tiny, EngineKind::plain, 97, 31);
  tiny.stride = 20;
  check_cuts(tiny, EngineKind::plain, 97, 101);
}

TEST_CASE("the vectorised engine gives the same bits for every cut (long)") {
  for (const int radius : {0, 2, 3}) {
    AnalysisConfig config;
    config.smoothing_radius = radius;
    check_cuts(config, EngineKind::highway, 1031, 1290);
    config.range = {20.0, 100.0};
    check_cuts(config, EngineKind::highway, 1024, 700);
  }
}

TEST_CASE("vectorised windows of every side give the same bits for every cut (long)") {
  for (const int window : {16, 32, 64, 128, 256}) {
    for (const int stride : {window / 2, window / 3, window + 9}) {
      AnalysisConfig config;
      config.window = window;
      config.stride = stride;
      check_cuts(config, EngineKind::highway, 631, 389);
      config.range = {20.0, 100.0};
      config.smoothing_radius = 7;
      check_cuts(config, EngineKind::highway, 389, 601);
    }
  }
  AnalysisConfig large;
  large.window = 512;
  large.stride = 65;
  check_cuts(large, EngineKind::highway, 800, 650);
}

TEST_CASE("threads share an engine, each with a workspace of its own") {
  const AnalysisConfig config;
  const Image image = textured_image(1100, 700, 8);
  for (const EngineKind kind : {EngineKind::plain, EngineKind::highway}) {
    const auto engine = make_spectrum_engine(config, kind);
    const Outcome whole = run_whole(*engine, image, config);
    const WindowBlock all = all_windows(image, config);
    Outcome shared = empty_outcome(image, config);
    std::vector<SpectrumSums> parts(static_cast<std::size_t>(all.columns), empty_sums(config));
    std::vector<std::thread> threads;
    for (std::int64_t column = 0; column < all.columns; ++column) {
      threads.emplace_back([&, column] {
        const auto workspace = engine->make_workspace();
        engine->run(parts[static_cast<std::size_t>(column)], {shared.map.values.data(), shared.map.columns},
                    whole_plane(image), {column, 1, 0, all.rows}, *workspace);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const SpectrumSums& part : parts) shared.sums += part;
    CHECK(same_bits(whole, shared));
  }
}
