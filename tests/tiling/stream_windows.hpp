#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/slide.hpp>
#include <slidestream/stitch.hpp>

#include "image/mask.hpp"
#include "support/coded_slides.hpp"
#include "support/temporary_folder.hpp"
#include "tiling/tile_stream.hpp"

/// \file
/// Windows as a stream gives them, and as the whole level in memory has them.

namespace slidestream::test {

using Pixels = std::vector<std::uint8_t>;

struct Window {
  Pixels pixels;
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int32_t slide = 0;

  bool operator==(const Window&) const = default;
};

/// Slide by slide, window by window, from the whole level in memory.
inline std::vector<Window> plain_windows(const TileStreamOptions& options) {
  const WindowRequest& request = options.windows;
  std::vector<Window> all;
  for (std::size_t place = 0; place < options.slides.size(); ++place) {
    const auto slide = Slide::open(options.slides[place]);
    const auto index = static_cast<std::size_t>(request.level);
    const Level& level = slide->info().levels[index];
    Pixels whole(static_cast<std::size_t>(level.width * level.height * 3));
    read_rgb(*slide, index, 0, 0, {whole.data(), level.width * 3, level.width, level.height, rgb_format},
             request.on_bad_tile);
    const GridScale scale = {slide->info().downsample_x(index), slide->info().downsample_y(index)};
    std::vector<Window> windows;
    for (std::int64_t y = 0; y < level.height; y += request.step.height) {
      for (std::int64_t x = 0; x < level.width; x += request.step.width) {
        const bool inside = x + request.size.width <= level.width && y + request.size.height <= level.height;
        if (!inside && request.edge == WindowEdge::drop) continue;
        Window window;
        window.pixels.resize(static_cast<std::size_t>(request.size.width * request.size.height * 3));
        const std::int64_t plane = request.size.width * request.size.height;
        for (std::int64_t i = 0; i < plane; ++i) {
          const std::int64_t column = x + i % request.size.width, row = y + i / request.size.width;
          for (int channel = 0; channel < 3; ++channel) {
            const bool planar = options.layout == WindowLayout::planar;
            window.pixels[static_cast<std::size_t>(planar ? channel * plane + i : i * 3 + channel)] =
                column < level.width && row < level.height
                    ? whole[static_cast<std::size_t>((row * level.width + column) * 3 + channel)]
                    : options.fill;
          }
        }
        window.x = static_cast<std::int64_t>(static_cast<double>(x) * scale.x + 0.5);
        window.y = static_cast<std::int64_t>(static_cast<double>(y) * scale.y + 0.5);
        window.slide = static_cast<std::int32_t>(place);
        windows.push_back(std::move(window));
      }
    }
    const std::size_t n = windows.size();
    const auto shard = static_cast<std::size_t>(request.shard), shards = static_cast<std::size_t>(request.shards);
    for (std::size_t i = n * shard / shards; i < n * (shard + 1) / shards; ++i) all.push_back(std::move(windows[i]));
  }
  return all;
}

/// All batches of a stream, and whether they are as long as they should be, and zeros where they have no windows.
inline std::vector<Window> read_windows(TileStream& stream, const TileStreamOptions& options) {
  const auto bytes = static_cast<std::size_t>(options.windows.size.width * options.windows.size.height * 3);
  std::vector<Window> all;
  TileBatch batch;
  bool is_last = false;
  while (true) {
    const TileStream::State state = stream.next(batch, std::chrono::seconds(60));
    REQUIRE(state != TileStream::State::waiting);
    if (state == TileStream::State::end) break;
    REQUIRE_FALSE(is_last);
    is_last = batch.count < options.batch;
    REQUIRE(batch.count > 0);
    REQUIRE(std::ssize(batch.coords) == 2 * batch.count);
    for (std::int64_t i = 0; i < options.batch; ++i) {
      const std::uint8_t* const begin = batch.pixels->data() + static_cast<std::size_t>(i) * bytes;
      const Pixels pixels(begin, begin + bytes);
      if (i >= batch.count) {
        REQUIRE(pixels == Pixels(bytes, 0));
        continue;
      }
      const auto at = static_cast<std::size_t>(i);
      all.push_back({pixels, batch.coords[2 * at], batch.coords[2 * at + 1], batch.slides[at]});
    }
  }
  return all;
}

/// A slide of 12 x 8 tiles of 32.
inline std::filesystem::path sound_slide(const TemporaryFolder& folder, const std::string& name, unsigned seed = 1) {
  write_coded_slide(
      folder / name,
      {.coding = TileCoding::jpeg_422, .width = 384, .height = 256, .tile_width = 32, .tile_height = 32, .seed = seed});
  return folder / name;
}

}  // namespace slidestream::test
