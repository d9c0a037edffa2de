#include "operators/common/tile_grid.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <sstream>

namespace slidestream::operators {

namespace {

/// What helps where pixels are too coarse: a value for the setting that allows them, where it can. Without such a
/// setting, no resolution. \param difference  by which the network's pixels are smaller, as a part of the slide's.
std::string advice_for_coarse(const NetworkTiles& tiles, double difference, const TileNames& names) {
  // Without its number; finer levels are there where one was asked for.
  const std::string level = names.level.substr(0, names.level.find_last_of(' '));
  const std::string finer = level.empty() ? "" : "; a lower " + level + " has finer pixels";
  if (names.mpp_tolerance.empty()) return "leave " + names.mpp + " out to use them unchanged" + finer;
  // In hundredths, rounded up so that it suffices.
  const double percent = std::ceil(100.0 * difference - 1e-6);
  if (percent / 100.0 > most_mpp_tolerance) return "a network for such pixels is needed" + finer;
  std::ostringstream text;
  text << "raise " << names.mpp_tolerance << " from " << tiles.mpp_tolerance << " (" << 100.0 * tiles.mpp_tolerance
       << " %) to " << percent / 100.0 << " (" << percent << " %) to use them unchanged" << finer;
  return text.str();
}

/// Of a tile, what lies inside the slide.
Rect part_inside(const TileGrid& grid, std::int64_t tile) {
  const Rect rect = grid.stitch.input_of(grid.stitch.tile(tile));
  const Size input = grid.stitch.input;
  return {rect.x, rect.y, std::min(rect.width, input.width - rect.x), std::min(rect.height, input.height - rect.y)};
}

/// Pixels of level 0 a pixel of the tiles.
GridScale pixel_of(const TileGrid& grid, const GridScale& level) {
  const double pixel = static_cast<double>(grid.factor) / 65536.0;
  return {level.x * pixel, level.y * pixel};
}

}  // namespace

TileNames names_of(const Network& network, int level) {
  return {network.called(), network.setting_name("mpp"), network.setting_name("mpp_tolerance"),
          network.setting_name("input.mpp"),
          level > 0 ? network.setting_name("input.level") + " " + std::to_string(level) : std::string()};
}

void check_fine_enough(const NetworkTiles& tiles, double mpp, const TileNames& names) {
  const double factor = std::rint(65536.0 * *tiles.mpp / mpp);
  if (factor >= 65536.0 - std::rint(65536.0 * tiles.mpp_tolerance)) return;
  const double difference = 1.0 - *tiles.mpp / mpp;
  std::ostringstream text;
  text << "the slide's pixels have " << mpp << " micrometres" << (names.level.empty() ? "" : " at ") << names.level
       << ", and the " << *tiles.mpp << " of " << names.network << " is " << std::setprecision(3) << 100.0 * difference
       << " % less; " << advice_for_coarse(tiles, difference, names);
  throw Error(text.str());
}

TileGrid tile_grid(const NetworkTiles& tiles, Size level, const std::optional<double>& mpp, std::int64_t scale,
                   StitchEdge edge, bool nearest, const TileNames& names) {
  TileGrid grid;
  Size input = level;
  if (tiles.mpp) {
    if (!mpp) {
      throw Error(names.network + "'s tiles are of a resolution, and the slide's isn't known; set " + names.slide_mpp);
    }
    check_fine_enough(tiles, *mpp, names);
    grid.factor = area_factor(*tiles.mpp, *mpp, tiles.mpp_tolerance);
    if (grid.factor != 65536) input = AreaResampler::size_of(level, grid.factor);
    if (input.width < 1 || input.height < 1) {
      throw Error("the slide is smaller than a pixel of " + names.network + "'s tiles");
    }
  }
  grid.stitch = plan_stitching(input, tiles.side, tiles.overlap, scale, edge, nearest);
  return grid;
}

bool is_tissue(const TileGrid& grid, std::int64_t tile, const MaskTable& mask, const GridScale& level, double share) {
  return mask.is_tissue(part_inside(grid, tile), pixel_of(grid, level), share);
}

std::string doubt_of_tiles(const TileGrid& grid, const MaskTable& mask, const GridScale& level, double share,
                           const std::string& setting) {
  double largest = 0.0;
  for (std::int64_t tile = 0; tile < grid.stitch.tiles(); ++tile) {
    if (is_tissue(grid, tile, mask, level, share)) return {};
    largest = std::max(largest, mask.share_of(part_inside(grid, tile), pixel_of(grid, level)));
  }
  if (largest == 0.0) return "no tile has tissue, and none is computed";
  std::ostringstream text;
  // Rounded down, so that it suffices.
  text << "no tile has the share of tissue that " << setting << " asks for (" << share
       << "), and none is computed; the largest is " << std::floor(1000.0 * largest) / 1000.0;
  return text.str();
}

void require_square_pixels(const NetworkTiles& tiles, const SlideInfo& info, const TileNames& names) {
  if (tiles.mpp) info.require_square_pixels(names.mpp, "set " + names.slide_mpp + " to take them as square");
}

std::array<std::int64_t, 2> level0_corner(const Rect& tile, const GridScale& pixel) {
  const auto rounded = [](std::int64_t at, double scale) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(at) * scale + 0.5));
  };
  return {rounded(tile.x, pixel.x), rounded(tile.y, pixel.y)};
}

std::optional<double> level0_magnification(const SlideInfo& info) {
  if (info.magnification) return *info.magnification;
  return info.mpp && !info.mpp_y ? std::optional(10.0 / *info.mpp) : std::nullopt;
}

}  // namespace slidestream::operators
