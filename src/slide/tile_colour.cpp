#include "slide/tile_colour.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <vector>

#include "codec/jpeg_stream.hpp"
#include "slide/codestream.hpp"
#include "slide/jpeg2000_decoder.hpp"
#include "slide/tile_bytes.hpp"
#include "slide/tile_head.hpp"

namespace slidestream {

namespace {

CodedFrame frame_of_jpeg(std::span<const std::byte> front) {
  std::vector<std::byte> picture;
  const JpegContent content = append_picture(picture, front);
  if (content.frame.components == 0) throw TileError("it ends before its frame's header");
  CodedFrame frame{content.frame.width, content.frame.height, content.frame.components};
  frame.marks = content.marks;
  return frame;
}

CodedFrame frame_of_jpeg2000(std::span<const std::byte> front) { return frame_of(parse_front(front)); }

}  // namespace

std::optional<CodedFrame> frame_of_tile(const Level& level, const LevelCoding& coding, const TileRange& tile,
                                        const std::function<void(std::uint64_t, std::span<std::byte>)>& read) {
  return parse_tile_head(tile, coding, read, level.codec == Codec::jpeg ? frame_of_jpeg : frame_of_jpeg2000);
}

Colour colour_of_tiles(const Slide& slide, std::size_t index) {
  const Level& level = slide.coded_level(index);
  if (is_grey(level.colour) || (level.codec != Codec::jpeg && level.codec != Codec::jpeg2000)) return level.colour;
  const LevelCoding& coding = coding_of(slide, index);
  const auto is_there = [&](const TileRange& range) {
    return range.length > 0 && slide.contains(range) && !claims_too_many_bytes(level, range);
  };
  const auto first = std::ranges::find_if(coding.tiles, is_there);
  if (first == coding.tiles.end()) return level.colour;
  const auto read = [&slide](std::uint64_t offset, std::span<std::byte> to) { slide.read(offset, to); };
  const std::optional<CodedFrame> frame = frame_of_tile(level, coding, *first, read);
  if (!frame || frame->components < 3) return level.colour;
  const TileDemand demand = demand_for(level, coding.tiles_say_colour, first - coding.tiles.begin());
  return colour_of_frame(demand, *frame).value_or(level.colour);
}

}  // namespace slidestream
