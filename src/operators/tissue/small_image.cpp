#include "operators/tissue/small_image.hpp"

#include <algorithm>
#include <optional>
#include <slidestream/stitch.hpp>

#include "image/block_means.hpp"

namespace slidestream::operators {
namespace {

HostPixels pixels_at(std::byte* data, std::int64_t width, std::int64_t height) {
  return {reinterpret_cast<std::uint8_t*>(data), width * 3, width, height, rgb_format};
}

/// Of the level that a small level is made of: what is read at a time.
std::int64_t band_rows(const Level& level, std::int64_t band_pixels) {
  return std::clamp<std::int64_t>(band_pixels / level.width, 1, std::min(level.tile_height, level.height));
}

/// A place for each tile, as several bands may read one.
std::vector<bool> marks_of(const Level& level) {
  return std::vector<bool>(static_cast<std::size_t>(level.columns * level.rows));
}

std::int64_t count(const std::vector<bool>& marks) { return std::count(marks.begin(), marks.end(), true); }

bool is_level(const SmallLevel& small) noexcept { return small.halvings == 0 && small.factor == 65536; }

/// As `read_small_rows`. \return whether each tile of the level became white
std::vector<bool> read_rows(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                            const std::function<void(const std::uint8_t* row)>& take, std::int64_t band_pixels) {
  const Level& level = slide.info().levels[small.level];
  const Size halved = BlockMeans::size_of({level.width, level.height}, small.halvings);
  const LevelWeights weights = weights_of_level(slide.info(), small.level);
  BlockMeans means({level.width, level.height}, small.halvings, weights.across, weights.down);
  std::optional<AreaResampler> resampler;
  if (small.factor != 65536) resampler.emplace(halved, small.factor);
  const std::int64_t rows = band_rows(level, band_pixels);
  std::vector<std::byte> band(static_cast<std::size_t>(rows * level.width) * 3);
  std::vector<std::uint8_t> mean(static_cast<std::size_t>(halved.width) * 3);
  std::vector<std::uint8_t> made(static_cast<std::size_t>(small.size.width) * 3);
  std::vector<bool> bad = marks_of(level);
  std::int64_t left = small.size.height;
  for (std::int64_t y = 0; y < level.height && left > 0;) {
    // To the end of a row of tiles, so that none is decoded twice.
    const std::int64_t end = std::min((y / level.tile_height + 1) * level.tile_height, level.height);
    const HostPixels part = pixels_at(band.data(), level.width, std::min(rows, end - y));
    read_rgb(slide, small.level, 0, y, part, on_bad_tile, &bad);
    for (std::int64_t row = 0; row < part.height && left > 0; ++row) {
      if (!means.add(mean.data(), part.data + row * part.pitch)) continue;
      if (resampler && !resampler->add(made.data(), mean.data())) continue;
      take(resampler ? made.data() : mean.data());
      --left;
    }
    y += part.height;
  }
  return bad;
}

}  // namespace

std::int64_t read_small_rows(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                             const std::function<void(const std::uint8_t* row)>& take, std::int64_t band_pixels) {
  return count(read_rows(slide, small, on_bad_tile, take, band_pixels));
}

std::uint64_t small_rows_bytes(const SlideInfo& info, const SmallLevel& small) {
  const Level& level = info.levels[small.level];
  const Size halved = BlockMeans::size_of({level.width, level.height}, small.halvings);
  return static_cast<std::uint64_t>(3 * band_rows(level, max_small_level_pixels) * level.width) +
         AreaResampler::bytes(halved, small.factor) + static_cast<std::uint64_t>(halved.width) * 32;
}

SmallImage read_small_level(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                            std::int64_t band_pixels) {
  SmallImage image;
  image.size = small.size;
  image.pixels.resize(static_cast<std::size_t>(small.size.width * small.size.height) * 3);
  if (is_level(small)) {
    image.is_bad = marks_of(slide.info().levels[small.level]);
    read_rgb(slide, small.level, 0, 0, pixels_at(image.pixels.data(), small.size.width, small.size.height), on_bad_tile,
             &image.is_bad);
    image.bad_tiles = count(image.is_bad);
    return image;
  }
  auto* to = reinterpret_cast<std::uint8_t*>(image.pixels.data());
  const std::int64_t samples = small.size.width * 3;
  const auto keep = [&](const std::uint8_t* row) { to = std::copy_n(row, samples, to); };
  image.is_bad = read_rows(slide, small, on_bad_tile, keep, band_pixels);
  image.bad_tiles = count(image.is_bad);
  return image;
}

SmallImage read_from_larger(const Slide& slide, const SmallLevel& small, const SmallLevel& larger,
                            BadTilePolicy on_bad_tile) {
  const auto nearest = [](std::int64_t at, double pixel, std::int64_t side) {
    return std::min(static_cast<std::int64_t>((static_cast<double>(at) + 0.5) * pixel), side - 1);
  };
  std::vector<std::int64_t> columns;
  for (std::int64_t x = 0; x < small.size.width; ++x)
    columns.push_back(nearest(x, small.scale.x / larger.scale.x, larger.size.width));
  SmallImage image;
  image.size = small.size;
  image.pixels.resize(static_cast<std::size_t>(small.size.width * small.size.height) * 3);
  auto* to = reinterpret_cast<std::uint8_t*>(image.pixels.data());
  std::int64_t made = 0;
  std::int64_t row = 0;
  const auto keep = [&](const std::uint8_t* pixels) {
    const auto is_here = [&] { return nearest(made, small.scale.y / larger.scale.y, larger.size.height) == row; };
    for (; made < small.size.height && is_here(); ++made) {
      for (const std::int64_t column : columns) to = std::copy_n(pixels + column * 3, 3, to);
    }
    ++row;
  };
  image.is_bad = read_rows(slide, larger, on_bad_tile, keep, max_small_level_pixels);
  image.bad_tiles = count(image.is_bad);
  return image;
}

}  // namespace slidestream::operators
