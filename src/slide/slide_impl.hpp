#pragma once

#include <functional>
#include <memory>
#include <slidestream/slide.hpp>
#include <vector>

#include "colour/colour_conversion.hpp"
#include "slide/container.hpp"
#include "slide/level_coding.hpp"
#include "slide/slide_files.hpp"

namespace slidestream {

class LargeTiles;

struct Slide::Impl {
  explicit Impl(const OpenOptions& options) : give_up(options.give_up), decode_memory(options.decode_memory) {}

  std::function<bool()> give_up;                ///< may be empty
  std::shared_ptr<DecodeMemory> decode_memory;  ///< null: no limit over all threads
  SlideFiles files;
  SlideInfo info;
  std::vector<Level> coded;          ///< levels as the files have them
  std::vector<LevelCoding> codings;  ///< one a level
  std::unique_ptr<Container> container;
  std::uint64_t compared_bytes =
      0;  ///< most of pictures, profiles and trees of XML that were held at a time when it was opened
  std::uint64_t profile_reading_bytes = 0;  ///< what reading its profile's table took of the memory for decoding
  std::shared_ptr<const ColourConversion> conversion;  ///< of decoded tiles; null: none
  std::shared_ptr<LargeTiles> large_tiles;             ///< while levels are compared; null: none
};

// For this folder alone.
/// What a slide is made of.
const Slide::Impl& impl_of(const Slide& slide) noexcept;
/// A slide of these parts.
std::shared_ptr<const Slide> make_slide(std::unique_ptr<Slide::Impl> impl);

}  // namespace slidestream
