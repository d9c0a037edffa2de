#include "slide/likeness/colour_tiles.hpp"

#include <algorithm>
#include <optional>

#include "slide/likeness/large_tiles.hpp"

namespace slidestream {
namespace {

constexpr std::int64_t least_kept_tiles = 4;  ///< as many fit in

RgbPicture read_picture_in_rgb(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top,
                               std::int64_t width, std::int64_t height) {
  RgbPicture picture{width, height, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * width * height))};
  read_compared(slide, level, left, top, {picture.samples.data(), 3 * width, width, height, rgb_format},
                BadTilePolicy::fail);
  return picture;
}

}  // namespace

bool ColourTiles::keeps(std::size_t level) const {
  const Level& of = slide_.coded_level(level);
  return of.tiled && 3 * of.tile_width * of.tile_height <= most_bytes / least_kept_tiles;
}

RgbPicture ColourTiles::read(std::size_t level, const PixelRange& columns, const PixelRange& rows) {
  if (!keeps(level)) {
    return read_picture_in_rgb(slide_, level, columns.begin, rows.begin, columns.size(), rows.size());
  }
  const Level& of = slide_.coded_level(level);
  RgbPicture picture{columns.size(), rows.size(),
                     std::vector<std::uint8_t>(static_cast<std::size_t>(3 * columns.size() * rows.size()))};
  for (const std::int64_t index : tiles_of(of, columns.begin, rows.begin, columns.size(), rows.size())) {
    const Tile& from = tile(level, index);
    const std::int64_t left = std::max(columns.begin, from.left);
    const std::int64_t right = std::min(columns.end, from.left + from.picture.width);
    const std::int64_t bottom = std::min(rows.end, from.top + from.picture.height);
    for (std::int64_t y = std::max(rows.begin, from.top); y < bottom; ++y) {
      std::copy_n(from.picture.pixel(left - from.left, y - from.top), 3 * (right - left),
                  picture.samples.begin() + 3 * ((y - rows.begin) * picture.width + left - columns.begin));
    }
  }
  return picture;
}

std::optional<RgbPicture> ColourTiles::read_whole(std::size_t level, const PixelRange& columns,
                                                  const PixelRange& rows) {
  const std::vector<std::int64_t> tiles =
      tiles_of(slide_.coded_level(level), columns.begin, rows.begin, columns.size(), rows.size());
  if (std::ranges::any_of(tiles, [&](std::int64_t index) { return slide_.tile(level, index).length == 0; })) {
    return std::nullopt;
  }
  return unless_bad([&] { return read(level, columns, rows); });
}

bool ColourTiles::has(std::size_t level, const PixelRange& columns, const PixelRange& rows) const {
  const std::vector<std::int64_t> tiles =
      tiles_of(slide_.coded_level(level), columns.begin, rows.begin, columns.size(), rows.size());
  return std::ranges::all_of(tiles, [&](std::int64_t index) { return tiles_.contains({level, index}); });
}

void ColourTiles::release(std::size_t level, const PixelRange& columns, const PixelRange& rows) {
  for (const std::int64_t index :
       tiles_of(slide_.coded_level(level), columns.begin, rows.begin, columns.size(), rows.size())) {
    const auto at = tiles_.find({level, index});
    if (at != tiles_.end()) at->second.used = 0;
  }
}

const ColourTiles::Tile& ColourTiles::tile(std::size_t level, std::int64_t index) {
  const auto known = tiles_.find({level, index});
  if (known != tiles_.end()) {
    known->second.used = ++uses_;
    return known->second;
  }
  const Level& of = slide_.coded_level(level);
  const std::int64_t left = index % of.columns * of.tile_width;
  const std::int64_t top = index / of.columns * of.tile_height;
  const std::int64_t width = std::min(of.tile_width, of.width - left);
  const std::int64_t height = std::min(of.tile_height, of.height - top);
  make_room(static_cast<std::size_t>(3 * width * height));
  Tile read{left, top, read_picture_in_rgb(slide_, level, left, top, width, height), ++uses_};
  bytes_ += read.picture.samples.size();
  return tiles_.emplace(std::pair(level, index), std::move(read)).first->second;
}

void ColourTiles::make_room(std::size_t bytes) {
  while (bytes_ + bytes > most_bytes) {
    const auto oldest = std::ranges::min_element(tiles_, {}, [](const auto& each) { return each.second.used; });
    bytes_ -= oldest->second.picture.samples.size();
    tiles_.erase(oldest);
  }
}

}  // namespace slidestream
