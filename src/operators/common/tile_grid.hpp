#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <slidestream/network.hpp>
#include <slidestream/slide.hpp>
#include <slidestream/stitch.hpp>
#include <string>

#include "image/mask.hpp"

namespace slidestream::operators {

/// Where a network's tiles lie in a level of a slide.
struct TileGrid {
  std::int64_t factor = 65536;  ///< pixels of the level that a pixel of the tiles stands for, times 65,536
  StitchPlan stitch;
};

/// What messages call a network and the settings of its tiles.
struct TileNames {
  std::string network = "the network";
  std::string mpp = "model.mpp";
  std::string mpp_tolerance = "model.mpp_tolerance";  ///< empty: its user can't set it
  std::string slide_mpp = "input.mpp";
  std::string level = {};  ///< the slide's level that was asked for: "input.level 1"; empty: the first
};

/// What the network's user calls them. \param level  of the slide, that was asked for.
TileNames names_of(const Network& network, int level = 0);

/// \param mpp  micrometres a pixel of the level, where known. \param scale  as `plan_stitching` has it.
/// \param nearest  as `plan_stitching` has it. \throws Error where the tiles' resolution can't be made of the level.
TileGrid tile_grid(const NetworkTiles& tiles, Size level, const std::optional<double>& mpp, std::int64_t scale,
                   StitchEdge edge, bool nearest = false, const TileNames& names = {});

/// Whether enough of a tile is tissue, as far as it lies inside the slide. \param level  pixels of level 0 a pixel of
/// the level.
bool is_tissue(const TileGrid& grid, std::int64_t tile, const MaskTable& mask, const GridScale& level, double share);

/// Says that no tile is tissue by `is_tissue`, and the largest share that one has. Empty where any is. \param setting
/// what the network's user calls `share`
std::string doubt_of_tiles(const TileGrid& grid, const MaskTable& mask, const GridScale& level, double share,
                           const std::string& setting);

/// \throws Error where pixels are too coarse for tiles with a resolution: pixels aren't made up. \param mpp  of the
/// pixels.
void check_fine_enough(const NetworkTiles& tiles, double mpp, const TileNames& names);

/// \throws SlideError if the tiles have a resolution, and the slide's pixels aren't square.
void require_square_pixels(const NetworkTiles& tiles, const SlideInfo& info, const TileNames& names = {});

/// The top left corner of a tile in pixels of level 0, rounded half up. \param pixel  pixels of level 0 per pixel of
/// the tile.
std::array<std::int64_t, 2> level0_corner(const Rect& tile, const GridScale& pixel);

/// Magnification of level 0: what the slide says, else that of 1 micrometre a pixel being 10 x. None where pixels
/// aren't square and the slide doesn't say.
std::optional<double> level0_magnification(const SlideInfo& info);

}  // namespace slidestream::operators
