// A window's results depend on its pixels alone: the same bits however a slide is cut into planes and blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "spectrum/engine.hpp"
#include "spectrum/engine_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// The part of an image that a block of windows needs and not a pixel more, in memory of its own.
class Cutout {
 public:
  Cutout(const Image& image, const AnalysisConfig& config, const WindowBlock& block) {
    const auto along = [&](std::int64_t first, std::int64_t count, std::int64_t size) {
      const std::int64_t begin = first * config.stride - config.smoothing_radius;
      const std::int64_t end = (first + count - 1) * config.stride + config.window + config.smoothing_radius;
      return std::pair(std::max<std::int64_t>(begin, 0), std::min(end, size));
    };
    const auto [left, right] = along(block.first_column, block.columns, image.width);
    const auto [top, bottom] = along(block.first_row, block.rows, image.height);
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

/// Cuts all windows into blocks at random places.
std::vector<WindowBlock> random_blocks(const WindowBlock& all, std::mt19937_64& random) {
  const auto cuts = [&](std::int64_t count) {
    std::vector<std::int64_t> at = {0, count};
    for (int i = 0; i < 2; ++i) at.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    return at;
  };
  const std::vector<std::int64_t> columns = cuts(all.columns);
  const std::vector<std::int64_t> rows = cuts(all.rows);
  std::vector<WindowBlock> blocks;
  for (std::size_t y = 0; y + 1 < rows.size(); ++y) {
    for (std::size_t x = 0; x + 1 < columns.size(); ++x) {
      blocks.push_back({columns[x], columns[x + 1] - columns[x], rows[y], rows[y + 1] - rows[y]});
    }
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  return blocks;
}

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

TEST_CASE("the plain engine gives the same bits for every cut") {
  for (const int radius : {0, 3, 9}) {
    for (const int stride : {16, 32, 50, 70}) {
      AnalysisConfig config;
      config.window = 64;
      config.stride = stride;
      config.smoothing_radius = radius;
      check_cuts(config, EngineKind::fftw, 411, 389);
    }
  }
  AnalysisConfig tiny;
  tiny.window = 8;
  tiny.stride = 1;
  check_cuts(tiny, EngineKind::fftw, 97, 31);
  tiny.stride = 20;
  check_cuts(tiny, EngineKind::fftw, 97, 101);
}

TEST_CASE("the vectorised engine gives the same bits for every cut") {
  for (const int radius : {0, 2, 3}) {
    AnalysisConfig config;
    config.smoothing_radius = radius;
    check_cuts(config, EngineKind::highway, 1031, 1290);
    config.range = {20.0, 100.0};
    check_cuts(config, EngineKind::highway, 1024, 700);
  }
}

TEST_CASE("threads share an engine, each with a workspace of its own") {
  const AnalysisConfig config;
  const Image image = textured_image(1100, 700, 8);
  for (const EngineKind kind : {EngineKind::fftw, EngineKind::highway}) {
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
