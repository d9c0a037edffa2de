#include "slide/likeness/large_tiles.hpp"

#include <algorithm>
#include <optional>

#include "slide/likeness/compared_levels.hpp"
#include "slide/likeness/level_picture.hpp"
#include "slide/slide_impl.hpp"
#include "slide/tile_reader.hpp"

namespace slidestream {
namespace {

void read_plainly(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top, const HostPixels& out,
                  BadTilePolicy on_bad_tile) {
  if (out.format == luminance_format) {
    read_luminance(slide, level, left, top, out, on_bad_tile);
  } else {
    read_rgb(slide, level, left, top, out, on_bad_tile);
  }
}

}  // namespace

bool LargeTiles::keeps(const Level& level) noexcept {
  // OpenSlide has a cache of its own.
  return level.codec != Codec::none && level.codec != Codec::openslide && tile_pixels(level) > least_pixels &&
         tile_pixels(level) <= most_pixels;
}

std::uint64_t LargeTiles::bytes_of(const Level& level) noexcept {
  if (!keeps(level)) return 0;
  return std::min<std::uint64_t>(most_bytes, 4 * static_cast<std::uint64_t>(level.width * level.height));
}

void LargeTiles::read(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top, const HostPixels& out,
                      BadTilePolicy on_bad_tile) {
  const Level& of = slide.coded_level(level);
  for (const std::int64_t index : tiles_of(of, left, top, out.width, out.height)) {
    const std::int64_t row = index / of.columns;
    const std::int64_t column = index % of.columns;
    const TilePart part = part_of_tile(of, column, row, left, top, out);
    const bool is_missing = slide.tile(level, index).length == 0;
    const Tile* const from = is_missing ? nullptr : &tile(slide, level, index, out.format);
    if (from == nullptr || from->samples.empty()) {
      read_plainly(slide, level, column * of.tile_width + part.from_x, row * of.tile_height + part.from_y, part.out,
                   on_bad_tile);
      continue;
    }
    const auto pixel = static_cast<std::int64_t>(out.format.pixel_bytes());
    for (std::int64_t y = 0; y < part.out.height; ++y) {
      std::copy_n(from->samples.data() + (part.from_y + y) * from->pitch + part.from_x * pixel, part.out.width * pixel,
                  part.out.data + y * part.out.pitch);
    }
  }
}

void LargeTiles::forget_from(std::size_t level) {
  std::erase_if(tiles_, [level](const auto& each) { return std::get<0>(each.first) >= level; });
}

const LargeTiles::Tile& LargeTiles::tile(const Slide& slide, std::size_t level, std::int64_t index,
                                         const PixelFormat& format) {
  const std::tuple key(level, index, format.pixel_bytes());
  const auto known = tiles_.find(key);
  if (known != tiles_.end()) {
    known->second.used = ++uses_;
    return known->second;
  }
  const Level& of = slide.coded_level(level);
  HostPixels whole;
  whole.width = std::min(of.tile_width, of.width - index % of.columns * of.tile_width);
  whole.height = std::min(of.tile_height, of.height - index / of.columns * of.tile_height);
  whole.format = format;
  whole.pitch = static_cast<std::ptrdiff_t>(whole.row_bytes());
  const std::size_t bytes = whole.row_bytes() * static_cast<std::size_t>(whole.height);
  make_room(level, bytes);
  Tile made{whole.pitch, std::vector<std::uint8_t>(bytes), ++uses_};
  whole.data = made.samples.data();
  TileReader reader;
  if (reader.read(slide, level, index, 0, 0, whole, BadTilePolicy::white) != TileFate::decoded) made.samples = {};
  ++decoded_;
  return tiles_.emplace(key, std::move(made)).first->second;
}

void LargeTiles::make_room(std::size_t level, std::size_t bytes) {
  std::optional<std::size_t> other;  // that was read last
  std::uint64_t last = 0;
  for (const auto& [key, each] : tiles_) {
    if (std::get<0>(key) == level || each.used < last) continue;
    other = std::get<0>(key);
    last = each.used;
  }
  std::erase_if(tiles_,
                [&](const auto& each) { return std::get<0>(each.first) != level && std::get<0>(each.first) != other; });
  while (true) {
    std::size_t held = 0;
    auto oldest = tiles_.end();
    for (auto each = tiles_.begin(); each != tiles_.end(); ++each) {
      if (std::get<0>(each->first) != level || each->second.samples.empty()) continue;
      held += each->second.samples.size();
      if (oldest == tiles_.end() || each->second.used < oldest->second.used) oldest = each;
    }
    if (oldest == tiles_.end() || held + bytes <= most_bytes) return;
    tiles_.erase(oldest);
  }
}

void read_compared(const Slide& slide, std::size_t level, std::int64_t left, std::int64_t top, const HostPixels& out,
                   BadTilePolicy on_bad_tile) {
  LargeTiles* const kept = impl_of(slide).large_tiles.get();
  if (kept != nullptr && LargeTiles::keeps(slide.coded_level(level))) {
    kept->read(slide, level, left, top, out, on_bad_tile);
  } else {
    read_plainly(slide, level, left, top, out, on_bad_tile);
  }
}

}  // namespace slidestream
