#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <slidestream/slide.hpp>

#include "codec/jpeg_marks.hpp"

/// \file
/// The rule that decides whether a tile is what its slide says, and what its pixels are of it. Every decoder asks it,
/// on the CPU and for the GPU, so that a tile's verdict doesn't depend on who decodes it. A GPU's codec may leave more
/// to the CPU; it must not vouch for what the rule refuses.

namespace slidestream {

/// What a slide asks of one of its tiles. Sizes are pixels.
struct TileDemand {
  Colour colour = Colour::rgb;
  std::int64_t width = 0;  ///< of the level's tiles
  std::int64_t height = 0;
  std::int64_t inside_width = 0;  ///< the part inside the image
  std::int64_t inside_height = 0;
  PixelFormat format = luminance_format;  ///< of the pixels that are wanted: or `rgb_format`
  bool tiles_say_colour = false;          ///< markers of a JPEG may overrule `colour`; else its frame header alone

  bool operator==(const TileDemand&) const = default;
};

/// What the level asks of its tile `index`. \param tiles_say_colour  as its `LevelCoding` has it
inline TileDemand demand_for(const Level& level, bool tiles_say_colour, std::int64_t index,
                             const PixelFormat& format = luminance_format) noexcept {
  const std::int64_t x = index % level.columns * level.tile_width;
  const std::int64_t y = index / level.columns * level.tile_height;
  return {level.colour,
          level.tile_width,
          level.tile_height,
          std::min(level.tile_width, level.width - x),
          std::min(level.tile_height, level.height - y),
          format,
          tiles_say_colour};
}

/// What a compressed tile's header says.
struct CodedFrame {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::size_t components = 0;
  bool luminance_is_coded = false;  ///< whatever the colour: component 0 is luminance by the codec's own transform
  bool rgb_is_coded = false;        ///< whatever the colour: the codec's own transform is of R, G and B
  bool ycbcr_is_coded = false;      ///< whatever the colour: without that transform, components are sampled apart
  JpegMarks marks = {};             ///< of a JPEG
};

/// Why a frame isn't a tile of its slide.
enum class FrameFault : std::uint8_t {
  none,
  components,  ///< their number doesn't fit the slide's colour
  size,        ///< neither the tile's size nor, at the slide's edge, at least the part inside
  colour,      ///< what the slide's tag and the tile itself say of the components can't be told apart
};

/// What a tile's pixels are made of.
enum class PixelsOf : std::uint8_t {
  first,           ///< the first component as it is; for RGB three times
  first_inverted,  ///< 255 minus the first component
  rgb,             ///< the first three components as they are; for luminance by the formula of `luminance`
  ycbcr,  ///< the first three components by `ycbcr_to_rgb`; for luminance the first alone, so this is RGB's only
};

struct FrameVerdict {
  FrameFault fault = FrameFault::none;
  PixelsOf pixels = PixelsOf::first;  ///< where there is no fault
};

constexpr bool is_grey(Colour colour) noexcept { return colour == Colour::grey || colour == Colour::grey_inverted; }

/// Grey has a component and perhaps an extra one, colour has three and perhaps an extra one; a single component stands
/// for luminance, whatever the colour.
constexpr bool components_fit(Colour colour, std::size_t components) noexcept {
  return components == 1 || (is_grey(colour) ? components == 2 : components == 3 || components == 4);
}

/// The tile's own size, or at the slide's edge at least the part inside.
constexpr bool size_fits(const TileDemand& demand, std::int64_t width, std::int64_t height) noexcept {
  return width >= demand.inside_width && width <= demand.width && height >= demand.inside_height &&
         height <= demand.height;
}

/// What a frame's components are, three or more of which stand for a colour. Nothing where that can't be told.
constexpr std::optional<Colour> colour_of_frame(const TileDemand& demand, const CodedFrame& frame) noexcept {
  if (frame.rgb_is_coded && frame.ycbcr_is_coded) return {};
  if (frame.rgb_is_coded) return Colour::rgb;
  if (frame.ycbcr_is_coded) return Colour::ycbcr;
  if (frame.components == 3) return colour_of_jpeg(demand.colour, frame.marks, demand.tiles_say_colour);
  if (!demand.tiles_say_colour) return demand.colour;
  // Of four components Adobe's marker says that they are inks.
  return frame.marks.adobe == JpegMarks::no_adobe ? std::optional(demand.colour) : std::nullopt;
}

/// The verdict on a frame, before any of its samples are decoded.
constexpr FrameVerdict judge_frame(const TileDemand& demand, const CodedFrame& frame) noexcept {
  if (!components_fit(demand.colour, frame.components)) return {FrameFault::components};
  if (!size_fits(demand, frame.width, frame.height)) return {FrameFault::size};
  if (demand.colour == Colour::grey_inverted) return {FrameFault::none, PixelsOf::first_inverted};
  if (is_grey(demand.colour) || frame.components < 3) return {};
  const std::optional<Colour> colour = colour_of_frame(demand, frame);
  if (!colour) return {FrameFault::colour};
  const bool luminance = demand.format.channels == 1;
  if (*colour == Colour::ycbcr) return {FrameFault::none, luminance ? PixelsOf::first : PixelsOf::ycbcr};
  return {FrameFault::none, luminance && frame.luminance_is_coded ? PixelsOf::first : PixelsOf::rgb};
}

/// Bytes that a tile without compression must have at least: all rows inside the image.
constexpr std::size_t least_uncompressed_bytes(const TileDemand& demand, int samples) noexcept {
  return static_cast<std::size_t>(demand.inside_height * demand.width * samples);
}

}  // namespace slidestream
