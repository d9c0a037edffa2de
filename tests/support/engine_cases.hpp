#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "support/reference.hpp"

/// \file
/// What engines are tried on: configurations, images, and ways to cut an image.

namespace slidestream::test {

inline AnalysisConfig analysis(int window, int stride, int radius, ValueKind value) {
  AnalysisConfig config;
  config.window = window;
  config.stride = stride;
  config.smoothing_radius = radius;
  config.value = value;
  config.bins = 700;
  if (value == ValueKind::linear) config.range = {0.0, 20000.0};
  return config;
}

/// Bins and ranges: ordinary, narrow, and with all values outside.
inline std::vector<std::pair<int, std::array<double, 2>>> divisions() {
  return {{350, {10.0, 90.0}},  {1200, {-20.0, 100.0}}, {1, {0.0, 150.0}},     {64, {50.0, 50.5}}, {777, {-3.3, 147.0}},
          {4093, {0.0, 160.0}}, {100, {-90.0, -10.0}},  {100, {200.0, 300.0}}, {7, {0.0, 144.0}}};
}

/// Images whose spectra are known, or extreme: of one grey, and of a single point.
inline std::vector<Image> plain_images(std::int64_t width, std::int64_t height) {
  const std::size_t count = static_cast<std::size_t>(width * height);
  std::vector<Image> images;
  for (const int grey : {0, 1, 128, 255}) {
    images.push_back({width, height, std::vector<std::uint8_t>(count, static_cast<std::uint8_t>(grey))});
  }
  for (const std::size_t at : {count / 2 + static_cast<std::size_t>(width) / 2, std::size_t{0}, count - 1}) {
    images.push_back({width, height, std::vector<std::uint8_t>(count, 0)});
    images.back().pixels[at] = 255;
  }
  return images;
}

/// A rectangle of pixels.
struct Rectangle {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;
};

/// What a block of windows needs of an image and not a pixel more.
inline Rectangle needed(const Image& image, const AnalysisConfig& config, const WindowBlock& block) {
  const auto along = [&](std::int64_t first, std::int64_t count, std::int64_t size) {
    const std::int64_t begin = first * config.stride - config.smoothing_radius;
    const std::int64_t end = (first + count - 1) * config.stride + config.window + config.smoothing_radius;
    return std::pair(std::max<std::int64_t>(begin, 0), std::min(end, size));
  };
  const auto [left, right] = along(block.first_column, block.columns, image.width);
  const auto [top, bottom] = along(block.first_row, block.rows, image.height);
  return {left, top, right, bottom};
}

/// Cuts all windows into blocks at random places.
inline std::vector<WindowBlock> random_blocks(const WindowBlock& all, std::mt19937_64& random) {
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

}  // namespace slidestream::test
