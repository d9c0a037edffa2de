#include "slide/copied_tiles.hpp"

#include <algorithm>
#include <optional>
#include <slidestream/error.hpp>
#include <string>

#include "slide/level_coding.hpp"
#include "slide/tile_bytes.hpp"
#include "slide/white_tile.hpp"

namespace slidestream {

namespace {

std::string size_text(std::int64_t width, std::int64_t height) {
  return std::to_string(width) + " x " + std::to_string(height);
}

/// What of a level can't be copied, whatever its tiles hold; empty: nothing.
std::string fault_of(const Level& level, const PixelFormat& format) {
  if (level.codec == Codec::none) return "they are uncompressed, not JPEG";
  if (level.codec != Codec::jpeg) return std::string("they are ") + name(level.codec) + ", not JPEG";
  if (!level.tiled) return "they are strips";
  const std::int64_t side = level.tile_width;
  if (side != level.tile_height || side % 16 != 0 || side < 16 || side > 4096) {
    return "they are " + size_text(level.tile_width, level.tile_height) +
           " pixels, not a square with a side that is a multiple of 16, 16 to 4096";
  }
  if (level.colour == Colour::grey_inverted) return "0 is white in them";
  const bool grey = level.colour == Colour::grey;
  if (grey == (format.channels == 1)) return {};
  return grey ? "they are grey; identity.colour = \"luminance\" asks for that"
              : "they are in colour, and identity.colour asks for luminance";
}

/// Whether R, G and B, or grey, are sampled as TIFF wants it; or YCbCr.
bool sampling_fits(const JpegFrame& frame, Colour colour) {
  const auto all_alike = [&frame](std::size_t first) {
    return std::all_of(frame.sampling.begin() + static_cast<std::ptrdiff_t>(first),
                       frame.sampling.begin() + static_cast<std::ptrdiff_t>(frame.components),
                       [](const JpegFrame::Component& each) { return each.horizontal == 1 && each.vertical == 1; });
  };
  if (colour != Colour::ycbcr) return all_alike(0);
  const auto fits = [](int factor) { return factor == 1 || factor == 2 || factor == 4; };
  return all_alike(1) && fits(frame.sampling[0].horizontal) && fits(frame.sampling[0].vertical);
}

/// What a tile's components are, for whoever reads it out of the file that it is copied to, as well: that one counts
/// the markers, whatever the source does. \throws TileError
Colour colour_of_copy(const JpegContent& content, Colour tag, bool tiles_say_colour) {
  if (content.frame.components != 3) return tag;
  const std::optional<Colour> colour = colour_of_jpeg(tag, content.marks, tiles_say_colour);
  if (!colour) throw TileError("what its colours are can't be told from PhotometricInterpretation and its markers");
  if (colour_of_jpeg(*colour, content.marks) != colour) {
    throw TileError("its markers contradict PhotometricInterpretation");
  }
  return *colour;
}

void check_frame(const JpegFrame& frame, const Level& level, Colour colour) {
  if (!frame.baseline) throw TileError("it isn't baseline JPEG");
  if (frame.precision != 8) throw TileError("it has " + std::to_string(frame.precision) + " bits a sample");
  if (frame.width != level.tile_width || frame.height != level.tile_height) {
    throw TileError("it has " + size_text(frame.width, frame.height) + " pixels, not " +
                    size_text(level.tile_width, level.tile_height));
  }
  if (frame.components != (level.colour == Colour::grey ? 1 : 3)) {
    throw TileError("it has " + std::to_string(frame.components) + " components");
  }
  if (!sampling_fits(frame, colour)) throw TileError("its components are sampled as TIFF doesn't have it");
}

/// What tiles like this one need.
CopiedLevel level_like(const Slide& slide, std::size_t index, const TileRange& range) {
  const Level& level = slide.coded_level(index);
  if (!slide.contains(range)) throw TileError("its bytes lie outside the file");
  if (claims_too_many_bytes(level, range)) throw TileError("it claims more bytes than its pixels could need");
  std::vector<std::byte> bytes(range.length);
  slide.read(range.offset, bytes);
  CopiedLevel copied;
  std::vector<std::byte> picture;
  const LevelCoding& coding = coding_of(slide, index);
  std::vector<std::byte> joined;
  const JpegContent content = append_picture(picture, coded_bytes(coding, bytes, joined));
  const Colour colour = colour_of_copy(content, level.colour, coding.tiles_say_colour);
  check_frame(content.frame, level, colour);
  copied.frame = content.frame;
  copied.ycbcr = colour == Colour::ycbcr;
  copied.tag = level.colour;
  copied.tiles_say_colour = coding.tiles_say_colour;
  if (!coding.jpeg_tables.empty()) append_picture(copied.tables, coding.jpeg_tables);
  copied.white = make_white_tile(copied.tables, picture, content, colour);
  return copied;
}

/// A tile that is bad may become a white one, and one without an end gets it.
std::uint64_t most_bytes(const Slide& slide, std::size_t index, std::size_t white_bytes) {
  constexpr std::uint64_t end_bytes = 2;
  const Level& level = slide.coded_level(index);
  std::uint64_t bytes = 0;
  for (std::int64_t tile = 0; tile < level.columns * level.rows; ++tile) {
    const TileRange range = slide.tile(index, tile);
    bytes += std::max<std::uint64_t>(claims_too_many_bytes(level, range) ? 0 : range.length, white_bytes) + end_bytes;
  }
  return bytes;
}

}  // namespace

CopiedLevel copied_level(const Slide& slide, std::size_t index, const PixelFormat& format, BadTilePolicy on_bad_tile) {
  const auto refuse = [&slide](const std::string& cause) {
    throw_slide_error(slide.info().path, "its tiles can't be copied: " + cause);
  };
  const Level& level = slide.coded_level(index);
  if (const std::string fault = fault_of(level, format); !fault.empty()) refuse(fault);
  std::string cause;
  for (std::int64_t tile = 0; tile < level.columns * level.rows; ++tile) {
    const TileRange range = slide.tile(index, tile);
    if (range.length == 0) continue;
    try {
      CopiedLevel copied = level_like(slide, index, range);
      copied.most_bytes = most_bytes(slide, index, copied.white.size());
      return copied;
    } catch (const TileError& error) {
      if (cause.empty()) cause = "tile " + std::to_string(tile) + ": " + error.what();
      if (on_bad_tile == BadTilePolicy::fail) break;
    }
  }
  refuse(cause.empty() ? "none of them is there" : cause);
  return {};
}

void append_copied_tile(std::vector<std::byte>& to, const CopiedLevel& level, const LevelCoding& coding,
                        std::span<const std::byte> range) {
  std::vector<std::byte> joined;
  const JpegContent content = append_picture(to, coded_bytes(coding, range, joined));
  if (content.frame != level.frame) throw TileError("it isn't coded like the slide's first one");
  const bool ycbcr = colour_of_copy(content, level.tag, level.tiles_say_colour) == Colour::ycbcr;
  if (ycbcr != level.ycbcr) throw TileError("its colours aren't coded like those of the slide's first one");
}

}  // namespace slidestream
