#include "synth/pyramid.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "synth/workers.hpp"

namespace slidestream::synth {

namespace {

constexpr std::int64_t smallest_level = 64;  // pixels, the shorter side
constexpr std::uint8_t outside = 243;        // what lies beyond the last tile: glass

std::int64_t tiles_along(std::int64_t pixels, int tile) { return (pixels + tile - 1) / tile; }

LevelSize quarter_of(std::int64_t width, std::int64_t height) {
  return {std::max<std::int64_t>(width / 4, 1), std::max<std::int64_t>(height / 4, 1)};
}

/// Means of 4 x 4 pixels; `width` and `height` are those of the result.
void reduce(const std::uint8_t* from, std::int64_t from_width, std::uint8_t* to, std::int64_t to_width,
            std::int64_t width, std::int64_t height) {
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint8_t* source = from + y * 4 * from_width * 3;
    std::uint8_t* target = to + y * to_width * 3;
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t channel = 0; channel < 3; ++channel) {
        unsigned sum = 8;
        for (std::int64_t row = 0; row < 4; ++row) {
          const std::uint8_t* pixel = source + row * from_width * 3 + x * 12 + channel;
          sum += pixel[0] + pixel[3] + pixel[6] + pixel[9];
        }
        target[x * 3 + channel] = static_cast<std::uint8_t>(sum / 16);
      }
    }
  }
}

}  // namespace

Bytes reduce_tile(std::span<const std::uint8_t> rgb, int tile) {
  const int side = tile / 4;
  Bytes quarter(static_cast<std::size_t>(side) * side * 3);
  reduce(rgb.data(), tile, quarter.data(), side, side, side);
  return quarter;
}

std::vector<LevelSize> lower_levels(const SynthOptions& options) {
  std::vector<LevelSize> sizes;
  LevelSize size{options.width, options.height};
  for (int level = 1; level < options.levels; ++level) {
    size = {size.width / 4, size.height / 4};
    if (std::min(size.width, size.height) < smallest_level) break;
    sizes.push_back(size);
  }
  return sizes;
}

Pyramid::Pyramid(const std::filesystem::path& file, const SynthOptions& options, std::vector<TileEncoder>& encoders)
    : tile_(options.tile),
      sizes_(lower_levels(options)),
      encoders_(encoders),
      quarter_(quarter_of(options.width, options.height)),
      thumbnail_(quarter_.width, quarter_.height),
      ranges_(sizes_.size()),
      spilled_(file) {
  // The thumbnail is made of a quarter-size band even where that isn't a level.
  std::int64_t columns_above = tiles_along(options.width, tile_);
  for (std::size_t level = 0; level < std::max<std::size_t>(sizes_.size(), 1); ++level) {
    const LevelSize size = level < sizes_.size() ? sizes_[level] : quarter_;
    Band band;
    band.columns = tiles_along(size.width, tile_);
    band.rows = tiles_along(size.height, tile_);
    band.width = std::max(band.columns * tile_, columns_above * (tile_ / 4));
    band.rgb.assign(static_cast<std::size_t>(band.width) * tile_ * 3, outside);
    columns_above = band.columns;
    bands_.push_back(std::move(band));
  }
}

void Pyramid::add_row(const std::vector<const Bytes*>& quarters) {
  Band& band = bands_[0];
  const std::int64_t side = tile_ / 4;
  for (std::size_t column = 0; column < quarters.size(); ++column) {
    for (std::int64_t y = 0; y < side; ++y) {
      const std::int64_t to = (band.parts * side + y) * band.width + static_cast<std::int64_t>(column) * side;
      std::memcpy(band.rgb.data() + to * 3, quarters[column]->data() + y * side * 3,
                  static_cast<std::size_t>(side) * 3);
    }
  }
  next_part(0);
}

void Pyramid::finish() {
  for (std::size_t level = 0; level < bands_.size(); ++level) {
    if (bands_[level].parts > 0) flush(level);
  }
}

std::int64_t Pyramid::tiles(std::size_t level) const noexcept {
  return static_cast<std::int64_t>(ranges_[level].size());
}

Bytes Pyramid::tile(std::size_t level, std::int64_t index) {
  const Range range = ranges_[level][index];
  Bytes bytes(range.length);
  if (!spilled_.read(range.offset, bytes)) spilled_.fail("");
  return bytes;
}

void Pyramid::next_part(std::size_t level) {
  if (++bands_[level].parts == 4) flush(level);
}

void Pyramid::flush(std::size_t level) {
  Band& band = bands_[level];
  // A level's height is rounded down, so that the level above may end in a tile row that is no part of it.
  if (band.row < band.rows) {
    if (level == 0) {
      const std::int64_t top = band.row * tile_;
      const std::int64_t bottom = std::min(top + tile_, quarter_.height);
      for (std::int64_t y = top; y < bottom; ++y) {
        thumbnail_.add_row(y, band.rgb.data() + (y - top) * band.width * 3);
      }
    }
    if (level < sizes_.size()) encode(level);
    if (level + 1 < bands_.size()) {
      Band& below = bands_[level + 1];
      const std::int64_t side = tile_ / 4;
      reduce(band.rgb.data(), band.width, below.rgb.data() + below.parts * side * below.width * 3, below.width,
             band.columns * side, side);
    }
  }
  const bool part_below = band.row < band.rows && level + 1 < bands_.size();
  ++band.row;
  band.parts = 0;
  std::fill(band.rgb.begin(), band.rgb.end(), outside);
  if (part_below) next_part(level + 1);
}

void Pyramid::encode(std::size_t level) {
  const Band& band = bands_[level];
  std::vector<Bytes> tiles(band.columns);
  parallel_for(encoders_.size(), band.columns, [&](std::int64_t column, std::size_t worker) {
    std::vector<std::uint8_t> rgb(static_cast<std::size_t>(tile_) * tile_ * 3);
    const std::size_t row_bytes = static_cast<std::size_t>(tile_) * 3;
    for (int y = 0; y < tile_; ++y) {
      std::memcpy(rgb.data() + y * row_bytes, band.rgb.data() + (y * band.width + column * tile_) * 3, row_bytes);
    }
    tiles[column] = encoders_[worker].encode(rgb);
  });
  for (const Bytes& tile : tiles) {
    ranges_[level].push_back({spilled_.size(), tile.size()});
    if (!spilled_.write(spilled_.size(), tile)) spilled_.fail("");
  }
}

}  // namespace slidestream::synth
