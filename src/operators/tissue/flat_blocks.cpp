#include "operators/tissue/flat_blocks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>

#include "image/views.hpp"
#include "operators/tissue/tissue.hpp"

namespace slidestream::operators {
namespace {

constexpr std::int64_t most_block_side = 32;
constexpr std::int64_t least_block_side = 8;
constexpr std::int64_t blocks_along_image = 16;

constexpr std::size_t most_looks = 16;
constexpr int least_lost = 2;
constexpr std::int64_t look_side = 128;                           ///< pixels of the larger level
constexpr std::int64_t most_look_pixels = std::int64_t{1} << 24;  ///< of the tiles that a look decodes
constexpr int far_from_colour = 24;                               ///< of 255
constexpr std::int64_t least_deviation = 16;                      ///< of grey, of 255
constexpr int least_bright = 40;                                  ///< of the largest sample: darker is no tissue

using Colour3 = std::array<std::uint8_t, 3>;

const std::byte* first_sample(const SmallImage& image, std::int64_t x, std::int64_t y) {
  return image.pixels.data() + (y * image.size.width + x) * 3;
}

bool is_of_one_colour(const SmallImage& image, const Rect& block) {
  const std::byte* const first = first_sample(image, block.x, block.y);
  const auto bytes = static_cast<std::size_t>(block.width) * 3;
  if (std::memcmp(first, first + 3, bytes - 3) != 0) return false;
  for (std::int64_t y = block.y + 1; y < block.bottom(); ++y) {
    if (std::memcmp(first, first_sample(image, block.x, y), bytes) != 0) return false;
  }
  return true;
}

/// What a block of the small image covers of a level.
Rect area_on_level(const SlideInfo& info, const SmallLevel& small, std::size_t level, const Rect& block) {
  struct Range {
    std::int64_t begin = 0;
    std::int64_t size = 0;
  };
  const auto along = [](std::int64_t begin, std::int64_t end, double pixel, std::int64_t side) {
    const auto from = static_cast<std::int64_t>(std::floor(static_cast<double>(begin) * pixel));
    const auto to = static_cast<std::int64_t>(std::ceil(static_cast<double>(end) * pixel));
    const std::int64_t first = std::min(from, side - 1);
    return Range{first, std::clamp(to, first + 1, side) - first};
  };
  const Level& at = info.levels[level];
  const Range columns = along(block.x, block.right(), small.scale.x / info.downsample_x(level), at.width);
  const Range rows = along(block.y, block.bottom(), small.scale.y / info.downsample_y(level), at.height);
  return {columns.begin, rows.begin, columns.size, rows.size};
}

/// Half of each axis at most: levels may lie some pixels apart.
Rect middle_of(const Rect& area) {
  const auto side = [](std::int64_t of) { return std::clamp<std::int64_t>(of / 2, 1, look_side); };
  const std::int64_t width = side(area.width);
  const std::int64_t height = side(area.height);
  return {area.x + (area.width - width) / 2, area.y + (area.height - height) / 2, width, height};
}

bool holds_for_tiles(const Level& level, const Rect& area, const std::function<bool(std::int64_t tile)>& holds) {
  for (std::int64_t row = area.y / level.tile_height; row * level.tile_height < area.bottom(); ++row) {
    for (std::int64_t column = area.x / level.tile_width; column * level.tile_width < area.right(); ++column) {
      if (!holds(row * level.columns + column)) return false;
    }
  }
  return true;
}

int saturation_of(const Colour3& colour) {
  std::byte found{};
  saturation({&found, 1, {0, 0, 1, 1}, {1, 1}, luminance_format},
             {reinterpret_cast<const std::byte*>(colour.data()), 3, {0, 0, 1, 1}, {1, 1}, rgb_format});
  return std::to_integer<int>(found);
}

/// Sums of 16,384 pixels at most.
bool shows_something(const std::vector<std::uint8_t>& rgb, const Colour3& flat) {
  const auto count = static_cast<std::int64_t>(rgb.size() / 3);
  std::array<std::int64_t, 3> sums{};
  std::int64_t sum = 0;
  std::int64_t squares = 0;
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    const std::int64_t samples = rgb[i] + rgb[i + 1] + rgb[i + 2];
    for (std::size_t c = 0; c < 3; ++c) sums[c] += rgb[i + c];
    sum += samples;
    squares += samples * samples;
  }
  Colour3 mean{};
  int distance = 0;
  for (std::size_t c = 0; c < 3; ++c) {
    mean[c] = static_cast<std::uint8_t>((sums[c] + count / 2) / count);
    distance = std::max(distance, std::abs(mean[c] - flat[c]));
  }
  if (distance <= far_from_colour) return false;
  // Of three times the grey.
  constexpr std::int64_t least_variance = 9 * least_deviation * least_deviation;
  if (count * squares - sum * sum >= least_variance * count * count) return true;
  return std::ranges::max(mean) >= least_bright && saturation_of(mean) > std::max(most_glass, saturation_of(flat));
}

bool is_lost(const Slide& slide, std::size_t number, const Rect& look, const Colour3& flat) {
  const Level& level = slide.info().levels[number];
  std::int64_t tiles = 0;
  const bool has_all = holds_for_tiles(level, look, [&](std::int64_t tile) {
    ++tiles;
    return slide.tile(number, tile).length != 0;
  });
  if (!has_all || tiles > most_look_pixels / level.tile_width / level.tile_height) return false;
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(look.width * look.height) * 3);
  std::vector<bool> bad(static_cast<std::size_t>(level.columns * level.rows));
  read_rgb(slide, number, look.x, look.y, {rgb.data(), look.width * 3, look.width, look.height, rgb_format},
           BadTilePolicy::white, &bad);
  return std::ranges::find(bad, true) == bad.end() && shows_something(rgb, flat);
}

/// Numbers below `count`, ascending: steps of the golden ratio hit other columns in each row.
std::vector<std::size_t> spread_below(std::size_t count) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min(count, most_looks); ++i) {
    constexpr std::uint64_t step = 0x9E3779B1;
    const std::uint64_t part = static_cast<std::uint64_t>(i + 1) * step & 0xFFFFFFFF;
    chosen.push_back(count <= most_looks ? i : static_cast<std::size_t>(part * count >> 32));
  }
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

}  // namespace

FlatBlocks find_flat_blocks(const Slide& slide, const SmallLevel& small, const SmallImage& image) {
  const SlideInfo& info = slide.info();
  const Level& level = info.levels[small.level];
  const std::int64_t side =
      std::clamp(std::min(image.size.width, image.size.height) / blocks_along_image, least_block_side, most_block_side);
  FlatBlocks blocks;
  blocks.all = (image.size.width / side) * (image.size.height / side);
  for (std::int64_t y = 0; y + side <= image.size.height; y += side) {
    for (std::int64_t x = 0; x + side <= image.size.width; x += side) {
      const Rect block = {x, y, side, side};
      if (!is_of_one_colour(image, block)) continue;
      const bool is_sound =
          holds_for_tiles(level, area_on_level(info, small, small.level, block), [&](std::int64_t tile) {
            return slide.tile(small.level, tile).length != 0 && !image.is_bad[static_cast<std::size_t>(tile)];
          });
      if (is_sound) blocks.flat.push_back(block);
    }
  }
  return blocks;
}

bool has_lost_blocks(const Slide& slide, const SmallLevel& small, const SmallImage& image, const FlatBlocks& blocks,
                     std::size_t larger) {
  int lost = 0;
  for (const std::size_t i : spread_below(blocks.flat.size())) {
    const Rect& block = blocks.flat[i];
    Colour3 flat{};
    std::memcpy(flat.data(), first_sample(image, block.x, block.y), flat.size());
    try {
      const Rect look = middle_of(area_on_level(slide.info(), small, larger, block));
      if (is_lost(slide, larger, look, flat) && ++lost == least_lost) return true;
    } catch (const StorageError&) {
      throw;
    } catch (const StoppedError&) {
      throw;
    } catch (const SlideError&) {
      // The larger level can't be read there: it shows nothing.
    }
  }
  return false;
}

}  // namespace slidestream::operators
