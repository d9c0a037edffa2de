#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
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

/// Images of black and white alone, most of whose coefficients are 0 in exact arithmetic, in windows whose side is a
/// power of two above 32: what float32 leaves there instead is the whole of an engine's error.
inline std::vector<std::pair<std::string, Image>> stepped_images(std::int64_t side) {
  std::vector<std::pair<std::string, Image>> images;
  const auto add = [&](const std::string& name, auto white) {
    Image image{side, side, std::vector<std::uint8_t>(static_cast<std::size_t>(side * side), 0)};
    for (std::int64_t i = 0; i < side * side; ++i) {
      if (white(i % side, i / side)) image.pixels[static_cast<std::size_t>(i)] = 255;
    }
    images.emplace_back(name, std::move(image));
  };
  std::mt19937_64 random(19);
  std::vector<bool> noise(static_cast<std::size_t>(side));
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = random() % 2 == 0;
  const auto noise_at = [&](std::int64_t i) { return static_cast<bool>(noise[static_cast<std::size_t>(i % side)]); };
  add("half plane", [&](auto x, auto) { return x < side / 2; });
  add("upper half", [&](auto, auto y) { return y < side / 2; });
  add("a third", [&](auto x, auto) { return x < side / 3; });
  add("quarter", [&](auto x, auto y) { return x < side / 2 && y < side / 2; });
  add("square", [&](auto x, auto y) { return x > 20 && x < side / 2 && y > 13 && y < side / 2; });
  add("checkerboard of 1", [](auto x, auto y) { return (x + y) % 2 == 0; });
  add("checkerboard of 16", [](auto x, auto y) { return (x / 16 + y / 16) % 2 == 0; });
  add("stripes of 3", [](auto x, auto) { return x / 3 % 2 == 0; });
  add("stripes of 8", [](auto, auto y) { return y / 8 % 2 == 0; });
  add("noise along x", [&](auto x, auto) { return noise_at(x); });
  add("noise along y", [&](auto, auto y) { return noise_at(y); });
  add("noise by noise", [&](auto x, auto y) { return noise_at(x) != noise_at(5 * y + 3); });
  // Waves that run askew: every column and every row has all frequencies, and they cancel but on one line.
  add("diagonal half", [&](auto x, auto y) { return (x + y) % side < side / 2; });
  add("diagonal stripes", [&](auto x, auto y) { return (x + y) % 32 < 16; });
  add("steep stripes", [&](auto x, auto y) { return (3 * x + 7 * y) % side < side / 2; });
  add("diagonal noise", [&](auto x, auto y) { return noise_at(x + y); });
  add("steep noise", [&](auto x, auto y) { return noise_at(5 * x + 11 * y); });
  add("other diagonal noise", [&](auto x, auto y) { return noise_at(x + (side - 1) * y); });
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
