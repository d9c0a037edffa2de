#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "slide/likeness/colour_tiles.hpp"
#include "slide/likeness/compared_levels.hpp"
#include "slide/likeness/strokes.hpp"

// The search for blocks with small type in places of a smaller level.

namespace slidestream {

/// A square of the smaller level. Blocks are judged within `around` from its sides.
struct TypeWindow {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t side = 0;
  std::int64_t around = 0;
  std::int64_t first_x = 0;  ///< blocks before are in another window
  std::int64_t first_y = 0;
  std::int64_t strokes = 0;  ///< blocks
};

/// Rules blocks out until too few are left, by what was decoded before first: most slides need little more. Places of
/// which a tile is missing or bad in either level have no type.
class TypeSearch {
 public:
  TypeSearch(const ComparedLevels& levels, ColourTiles& colours, const std::vector<TypeWindow>& windows);

  /// Whether enough blocks have strokes where the larger level has glass. \throws SlideError as `read_rgb`, or the
  /// budget is spent
  bool finds_type();

 private:
  /// A rectangle of a window that is read at a time.
  struct Look {
    std::size_t level = 0;
    PixelRange columns;
    PixelRange rows;
    bool is_done = false;
    std::size_t waiting = 0;  ///< blocks
  };

  struct Place {
    TypeWindow at;
    PixelRange columns;  ///< of the larger level
    PixelRange rows;
    std::vector<Look> looks;  ///< the first one at the smaller level
  };

  /// A block that may show type.
  struct Block {
    bool may_show_type() const;
    bool waits_for(const Look& look, std::size_t larger) const;

    std::size_t place = 0;
    std::int64_t left = 0;  ///< in the smaller level
    std::int64_t top = 0;
    PixelRange columns;  ///< of the larger level, with what lies around
    PixelRange rows;
    std::optional<std::array<int, 3>> strengths = {};  ///< nothing: not seen
    ColourRange beneath = {};                          ///< as far as it was seen
  };

  void add_place(const TypeWindow& window);
  void add_blocks(std::size_t number);
  bool look_further();
  void look(std::size_t number, Look& at);
  bool is_whole(const Place& place);
  bool lacks_tiles(const Place& place) const;

  const ComparedLevels& levels_;
  ColourTiles& colours_;
  std::vector<Place> places_;
  std::vector<Block> blocks_;
};

}  // namespace slidestream
