#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <slidestream/slide.hpp>

#include "tiling/window_plan.hpp"

namespace slidestream {

/// Reads rectangles of slides, several tiles at a time. Any number of threads may use one object.
class RegionReader {
 public:
  RegionReader();
  ~RegionReader();
  RegionReader(const RegionReader&) = delete;
  RegionReader& operator=(const RegionReader&) = delete;

  /// Fills `out` (`rgb_format`, host memory) from pixel (`first_column`, `first_row`) of a level on. Only tiles that
  /// the rectangle touches are read. What lies beyond the level gets the value `fill`; missing tiles are white. Works
  /// with all the processors that the process may use; in a child that was forked from a process that did so, with the
  /// calling thread alone. \param between  called by the calling thread some times a second where it takes long; what
  /// it throws ends the reading. \throws SlideError naming a tile that can't be decoded, unless bad tiles are to be
  /// white
  void read(const Slide& slide, std::size_t level, std::int64_t first_column, std::int64_t first_row,
            const HostPixels& out, std::uint8_t fill, BadTilePolicy on_bad_tile,
            const std::function<void()>& between = {});

  /// The same for an image of another resolution: the rectangle's place and size are in its pixels. Tiles are decoded
  /// once, some rows of them at a time.
  void read(const Slide& slide, const Resolution& resolution, std::int64_t first_column, std::int64_t first_row,
            const HostPixels& out, std::uint8_t fill, BadTilePolicy on_bad_tile,
            const std::function<void()>& between = {});

 private:
  void read_tiles(const Slide& slide, std::size_t level, const Rect& tiles, const Rect& part, const HostPixels& out,
                  BadTilePolicy on_bad_tile);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slidestream
