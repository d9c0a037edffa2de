#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <vector>

#include "colour/colour_conversion.hpp"
#include "slide/slide_files.hpp"

/// \file
/// What readers and decoders of tiles must know of a slide beyond `SlideInfo`, whatever its container.

namespace slidestream {

/// How the tiles of a level are coded, and where they lie.
struct LevelCoding {
  int samples = 1;                     ///< per pixel, interleaved; those beyond the colour's are ignored
  int first_sample = 0;                ///< the one that is read as grey, where the samples are channels
  std::size_t channels = 1;            ///< that the samples are
  std::vector<TileRange> tiles;        ///< row by row
  std::vector<std::byte> jpeg_tables;  ///< tables that every JPEG tile shares; empty: none
  bool tiles_say_colour = false;       ///< markers of a JPEG tile may overrule the level's colour
  /// Each range holds items of DICOM's encapsulated pixels (PS3.5, A.4), whose values joined are the tile.
  bool in_items = false;
  /// Pixels of a tile of the file that OpenSlide decodes for one of ours; 0: it doesn't say.
  std::uint64_t pixels_behind = 0;
  /// While a slide is opened: the image's name if it is no level. Empty unless it only is one if those of its size
  /// before it are none.
  std::string spare_name;
  bool only_if_cut = false;  ///< while a slide is opened: it is a level only if its pixels show that it was cut
  /// While a slide is opened: pixels of level 0 along one of the level by the size that the file gives its pixels,
  /// where the level's own size says another; 0: it doesn't. A power of two.
  std::int64_t said_factor = 0;
  std::string contradiction;  ///< a line for where pixels don't show that factor; empty: none
  // Where tiles are several planes:
  Codec plane_codec = Codec::none;  ///< of each
  std::uint64_t plane_bytes = 0;    ///< that a plane of a tile takes to decode
  std::uint64_t coded_bytes = 0;    ///< of the tiles of all planes in the file
};

/// Of a level of the slide. \throws std::out_of_range for no such level
const LevelCoding& coding_of(const Slide& slide, std::size_t level);

/// What decoded tiles are converted to sRGB by; null: colours stay as they are.
std::shared_ptr<const ColourConversion> conversion_of(const Slide& slide) noexcept;

/// The files that the slide's tiles lie in.
const SlideFiles& files_of(const Slide& slide) noexcept;

/// The coded bytes of a tile, where they are one piece of what was read of its range; else none.
std::span<const std::byte> coded_piece(const LevelCoding& coding, std::span<const std::byte> range) noexcept;

/// The same of a tile of `length` bytes, of which only the first, `front`, are there.
std::span<const std::byte> coded_front(const LevelCoding& coding, std::span<const std::byte> front,
                                       std::size_t length) noexcept;

/// The same for every tile: several pieces are copied to `joined`, and given from there. \throws TileError when the
/// range doesn't hold what it should
std::span<const std::byte> coded_bytes(const LevelCoding& coding, std::span<const std::byte> range,
                                       std::vector<std::byte>& joined);

}  // namespace slidestream
