#include "slide/likeness/level_picture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "slide/likeness/large_tiles.hpp"

namespace slidestream {

PixelRange::PixelRange(std::int64_t first, std::int64_t last, double factor, std::int64_t size)
    : begin(std::clamp<std::int64_t>(std::llround(static_cast<double>(first) * factor), 0, size - 1)),
      end(std::clamp<std::int64_t>(std::llround(static_cast<double>(last) * factor), begin + 1, size)) {}

double LevelPicture::mean(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) const {
  std::uint64_t sum = 0;
  for (std::int64_t y = top; y < bottom; ++y) {
    const auto row = pixels.begin() + y * width;
    sum = std::accumulate(row + left, row + right, sum);
  }
  return static_cast<double>(sum) / static_cast<double>((right - left) * (bottom - top));
}

std::vector<std::int64_t> tiles_of(const Level& of, std::int64_t left, std::int64_t top, std::int64_t width,
                                   std::int64_t height) {
  std::vector<std::int64_t> tiles;
  for (std::int64_t row = top / of.tile_height; row <= (top + height - 1) / of.tile_height; ++row) {
    for (std::int64_t column = left / of.tile_width; column <= (left + width - 1) / of.tile_width; ++column) {
      tiles.push_back(row * of.columns + column);
    }
  }
  return tiles;
}

LevelPicture read_picture(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top,
                          std::int64_t width, std::int64_t height, BadTilePolicy on_bad_tile) {
  LevelPicture picture{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height))};
  read_compared(slide, level, left, top, {picture.pixels.data(), width, width, height}, on_bad_tile);
  return picture;
}

std::optional<LevelPicture> read_whole_picture(const Slide& slide, std::size_t level, const PixelRange& columns,
                                               const PixelRange& rows) {
  for (const std::int64_t tile :
       tiles_of(slide.coded_level(level), columns.begin, rows.begin, columns.size(), rows.size())) {
    if (slide.tile(level, tile).length == 0) return std::nullopt;
  }
  return unless_bad([&] {
    return read_picture(slide, level, columns.begin, rows.begin, columns.size(), rows.size(), BadTilePolicy::fail);
  });
}

}  // namespace slidestream
