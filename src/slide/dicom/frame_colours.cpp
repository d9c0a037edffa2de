#include "slide/dicom/frame_colours.hpp"

#include <algorithm>
#include <cstdint>
#include <slidestream/error.hpp>
#include <span>
#include <vector>

#include "codec/jpeg_stream.hpp"
#include "codec/tile_rule.hpp"
#include "config/quoted_text.hpp"
#include "slide/codestream.hpp"
#include "slide/tile_head.hpp"

namespace slidestream::dicom {

namespace {

constexpr std::uint64_t item_head_bytes = 8;

/// The first, a middle and the last of the frames that are there.
std::vector<const TileRange*> sample_frames(const LevelCoding& coding, const SlideFiles& files) {
  const std::vector<TileRange>& tiles = coding.tiles;
  const auto is_there = [&](const TileRange& range) {
    return range.length > item_head_bytes && files.contains(range.offset, range.length);
  };
  const auto first = std::find_if(tiles.begin(), tiles.end(), is_there);
  if (first == tiles.end()) return {};
  const auto last = std::find_if(tiles.rbegin(), tiles.rend(), is_there).base() - 1;
  const auto middle = std::find_if(first + (last - first) / 2, last, is_there);
  std::vector<const TileRange*> frames;
  for (const auto& frame : {first, middle, last}) {
    if (frames.empty() || frames.back() != &*frame) frames.push_back(&*frame);
  }
  return frames;
}

JpegContent parse_jpeg(std::span<const std::byte> front) {
  std::vector<std::byte> picture;
  const JpegContent content = append_picture(picture, front);
  if (content.frame.components == 0) throw TileError("it ends before its frame's header");
  return content;
}

std::string line_of(const std::string& frames, const std::string& said, const char* taken) {
  return "its " + frames + ", and PhotometricInterpretation is " + shown_code(said) + ": taken as " + taken;
}

/// A frame of one component is shown as grey, and further ones are passed over, whatever the slide says.
std::string compare_components(const Level& level, std::size_t components, const LevelCoding& coding,
                               const char* frames) {
  const auto samples = static_cast<std::size_t>(coding.samples);
  // Others are bad tiles.
  if (components == samples || !components_fit(level.colour, components)) return {};
  return std::string("its ") + frames + " have " + std::to_string(components) +
         (components == 1 ? " component" : " components") + ", and SamplesPerPixel (0028,0002) is " +
         std::to_string(samples) + ": " + (components == 1 ? "they are grey" : "further ones are passed over");
}

std::string compare_jpeg(const Level& level, const std::string& said, const LevelCoding& coding,
                         const JpegContent& content) {
  // Four are a bad tile here.
  if (content.frame.components > 3) return {};
  if (std::string line = compare_components(level, content.frame.components, coding, "JPEG frames"); !line.empty()) {
    return line;
  }
  if (content.frame.components != 3) return {};
  constexpr int adobe_rgb = 0, adobe_ycbcr = 1;
  const JpegMarks& marks = content.marks;
  if (level.colour == Colour::rgb && colour_of_jpeg(level.colour, marks, coding.tiles_say_colour) == Colour::ycbcr) {
    const char* what = marks.sampled_apart ? "subsampled components" : "a quantisation table for Cb and Cr";
    return line_of(std::string("JPEG frames have ") + what + ", which means YCbCr", said, "YCbCr");
  }
  // Marks that contradict each other say nothing.
  const bool says_ycbcr = marks.jfif || marks.adobe == adobe_ycbcr || marks.sampled_apart;
  const bool says_rgb = marks.adobe == adobe_rgb || marks.called_rgb;
  if (level.colour == Colour::rgb && says_ycbcr && !says_rgb) {
    const char* mark = marks.jfif ? "a JFIF marker" : "Adobe's marker with transform 1";
    return line_of(std::string("JPEG frames have ") + mark + ", which means YCbCr", said, "RGB");
  }
  if (level.colour == Colour::ycbcr && says_rgb && !says_ycbcr) {
    const char* mark = marks.called_rgb ? "components called R, G, B" : "Adobe's marker with transform 0";
    return line_of(std::string("JPEG frames have ") + mark + ", which means RGB", said, "YCbCr");
  }
  return {};
}

/// Behind a component transform frames are RGB, and only the name of that transform says so.
std::string compare_transform(const std::string& said, const Codestream& stream) {
  // YCbCr of another kind behind it is a bad tile.
  if (stream.jp2_says_ycbcr || stream.sampled_apart()) return {};
  if (said == (stream.is_reversible ? "YBR_RCT" : "YBR_ICT")) return {};
  const char* kind = stream.is_reversible ? "the reversible" : "the irreversible";
  return line_of(std::string("JPEG 2000 codestreams have ") + kind + " component transform", said, "RGB");
}

std::string compare_jpeg2000(const Level& level, const std::string& said, const LevelCoding& coding,
                             const Codestream& stream) {
  if (std::string line = compare_components(level, stream.components.size(), coding, "JPEG 2000 codestreams");
      !line.empty()) {
    return line;
  }
  if (stream.components.size() < 3 || is_grey(level.colour)) return {};
  if (stream.colour_transform) return compare_transform(said, stream);
  const bool is_ycbcr = level.colour == Colour::ycbcr;
  if (stream.jp2_says_ycbcr || stream.sampled_apart()) {
    const char* what = stream.jp2_says_ycbcr ? "are JP2 files that say sYCC" : "have subsampled components";
    return is_ycbcr ? std::string()
                    : line_of(std::string("JPEG 2000 frames ") + what + ", which means YCbCr", said, "YCbCr");
  }
  // YBR_ICT and YBR_RCT are what component transforms give.
  if (said != "YBR_ICT" && (is_ycbcr || !said.starts_with("YBR_"))) return {};
  return line_of("JPEG 2000 codestreams have no component transform", said, is_ycbcr ? "YCbCr" : "RGB");
}

/// What the head of one frame contradicts.
std::string compare_frame(const Level& level, const std::string& said, const LevelCoding& coding,
                          const TileRange& frame, const SlideFiles& files, OpenBudget& budget) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> to) {
    budget.take_bytes(to.size());
    files.read(offset, to);
  };
  if (level.codec == Codec::jpeg) {
    const auto content = parse_tile_head(frame, coding, read, parse_jpeg);
    return content ? compare_jpeg(level, said, coding, *content) : std::string();
  }
  const auto stream = parse_tile_head(frame, coding, read, parse_front);
  return stream ? compare_jpeg2000(level, said, coding, *stream) : std::string();
}

}  // namespace

std::string compare_colour(const Level& level, const std::string& said, const LevelCoding& coding,
                           const SlideFiles& files, OpenBudget& budget) {
  if (level.codec != Codec::jpeg && level.codec != Codec::jpeg2000) return {};
  const std::vector<const TileRange*> frames = sample_frames(coding, files);
  for (const TileRange* frame : frames) {
    std::string line = compare_frame(level, said, coding, *frame, files, budget);
    if (!line.empty()) return frame == frames.front() ? line : "some of " + line;
  }
  return {};
}

}  // namespace slidestream::dicom
