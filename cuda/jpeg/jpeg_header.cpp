#include "cuda/jpeg/jpeg_header.hpp"

#include <algorithm>
#include <cstring>

namespace slidestream::cuda {
namespace {

// The longest side that libjpeg takes.
constexpr std::uint32_t longest_side = 65500;
// SOI and the smallest table, as the CPU's decoder has it.
constexpr std::size_t least_tables = 2 + 21;

enum Marker : unsigned {
  sof0 = 0xC0,
  sof1 = 0xC1,
  dht = 0xC4,
  jpg = 0xC8,
  dac = 0xCC,
  soi = 0xD8,
  eoi = 0xD9,
  sos = 0xDA,
  dqt = 0xDB,
  dri = 0xDD,
  app0 = 0xE0,
  app15 = 0xEF,
  com = 0xFE,
};

bool is_other_frame(unsigned marker) {
  return marker >= sof0 && marker <= 0xCF && marker != dht && marker != jpg && marker != dac;
}

/// Walks the segments between SOI and the scan. Every read is checked against the end.
class SegmentReader {
 public:
  explicit SegmentReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool starts_with_soi() {
    if (bytes_.size() < 2 || at(0) != 0xFF || at(1) != soi) return false;
    position_ = 2;
    return true;
  }

  bool at_end() const { return position_ == bytes_.size(); }
  std::size_t position() const { return position_; }

  /// The next marker, fill bytes skipped; 0 when something else stands there.
  unsigned marker() {
    if (bytes_.size() - position_ < 2 || at(position_) != 0xFF) return 0;
    while (position_ < bytes_.size() && at(position_) == 0xFF) ++position_;
    if (position_ == bytes_.size()) return 0;
    return at(position_++);
  }

  /// What follows a segment's length; false when the end cuts it.
  bool segment(std::span<const std::byte>& content) {
    if (bytes_.size() - position_ < 2) return false;
    const std::size_t length = at(position_) << 8 | at(position_ + 1);
    if (length < 2 || length > bytes_.size() - position_) return false;
    content = bytes_.subspan(position_ + 2, length - 2);
    position_ += length;
    return true;
  }

 private:
  unsigned at(std::size_t i) const { return std::to_integer<unsigned>(bytes_[i]); }

  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

unsigned byte_at(std::span<const std::byte> bytes, std::size_t i) { return std::to_integer<unsigned>(bytes[i]); }

bool read_huffman_tables(std::span<const std::byte> content, JpegTableReferences& tables) {
  while (!content.empty()) {
    if (content.size() < 17) return false;
    const unsigned destination = byte_at(content, 0);
    if ((destination & 0xEFU) > 3) return false;
    std::size_t count = 0;
    for (std::size_t i = 1; i <= 16; ++i) count += byte_at(content, i);
    if (count > 256 || count > content.size() - 17) return false;
    auto& kind = (destination & 0x10U) != 0 ? tables.ac : tables.dc;
    kind[destination & 3U] = content.data() + 1;
    content = content.subspan(17 + count);
  }
  return true;
}

bool read_quantisation_tables(std::span<const std::byte> content, JpegTableReferences& tables) {
  while (!content.empty()) {
    const unsigned destination = byte_at(content, 0) & 15U;
    const unsigned precision = byte_at(content, 0) >> 4;
    const std::size_t size = precision != 0 ? 128 : 64;
    if (destination > 3 || precision > 1 || content.size() < 1 + size) return false;
    tables.quantisation[destination] = content.data() + 1;
    tables.wide[destination] = static_cast<std::uint8_t>(precision);
    content = content.subspan(1 + size);
  }
  return true;
}

JpegReason read_frame(std::span<const std::byte> content, JpegHeader& header) {
  if (content.size() < 6) return JpegReason::damaged_header;
  if (byte_at(content, 0) != 8) return JpegReason::precision;
  header.height = byte_at(content, 1) << 8 | byte_at(content, 2);
  header.width = byte_at(content, 3) << 8 | byte_at(content, 4);
  header.component_count = byte_at(content, 5);
  if (header.component_count != 1 && header.component_count != 3) return JpegReason::components;
  if (header.width == 0 || header.height == 0 || std::max(header.width, header.height) > longest_side) {
    return JpegReason::size;  // a height of 0 is told by DNL, which libjpeg doesn't take
  }
  if (content.size() != 6 + 3 * header.component_count) return JpegReason::damaged_header;
  for (std::size_t i = 0; i < header.component_count; ++i) {
    JpegComponent& component = header.components[i];
    component.id = static_cast<std::uint8_t>(byte_at(content, 6 + 3 * i));
    component.horizontal = static_cast<std::uint8_t>(byte_at(content, 7 + 3 * i) >> 4);
    component.vertical = static_cast<std::uint8_t>(byte_at(content, 7 + 3 * i) & 15U);
    component.quantisation = static_cast<std::uint8_t>(byte_at(content, 8 + 3 * i));
    if (component.horizontal - 1U > 3 || component.vertical - 1U > 3 || component.quantisation > 3) {
      return JpegReason::damaged_header;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (header.components[j].id == component.id) return JpegReason::components;
    }
  }
  return JpegReason::none;
}

JpegReason read_scan(std::span<const std::byte> content, JpegHeader& header) {
  if (header.component_count == 0 || content.empty()) return JpegReason::damaged_header;
  const std::size_t count = byte_at(content, 0);
  if (count != header.component_count) return JpegReason::several_scans;
  if (content.size() != 4 + 2 * count) return JpegReason::damaged_header;
  for (std::size_t place = 0; place < count; ++place) {
    const unsigned destinations = byte_at(content, 2 + 2 * place);
    JpegComponent& component = header.components[place];
    // libjpeg takes some other orders than the frame's, and refuses others.
    if (byte_at(content, 1 + 2 * place) != component.id) return JpegReason::components;
    component.dc = static_cast<std::uint8_t>(destinations >> 4);
    component.ac = static_cast<std::uint8_t>(destinations & 15U);
    if (component.dc > 3 || component.ac > 3) return JpegReason::damaged_header;
    if (header.tables.dc[component.dc] == nullptr || header.tables.ac[component.ac] == nullptr ||
        header.tables.quantisation[component.quantisation] == nullptr) {
      return JpegReason::missing_table;
    }
  }
  const bool sequential = byte_at(content, 1 + 2 * count) == 0 && byte_at(content, 2 + 2 * count) == 63 &&
                          byte_at(content, 3 + 2 * count) == 0;
  return sequential ? JpegReason::none : JpegReason::other_coding;
}

}  // namespace

const char* describe(JpegReason reason) noexcept {
  switch (reason) {
    case JpegReason::none:
      return "nothing";
    case JpegReason::not_a_jpeg:
      return "not a JPEG";
    case JpegReason::damaged_header:
      return "damaged header";
    case JpegReason::other_coding:
      return "not sequential Huffman coding";
    case JpegReason::precision:
      return "not 8 bits";
    case JpegReason::components:
      return "components";
    case JpegReason::colours:
      return "contradictory colours";
    case JpegReason::sampling:
      return "sampling factors";
    case JpegReason::several_scans:
      return "several scans";
    case JpegReason::missing_table:
      return "missing table";
    case JpegReason::unusual_table:
      return "unusual table";
    case JpegReason::size:
      return "frame size";
    case JpegReason::odd_marker:
      return "unusual marker";
    case JpegReason::no_room:
      return "no room in the batch";
    case JpegReason::bad_code:
      return "bad code";
    case JpegReason::out_of_range:
      return "coefficient out of range";
    case JpegReason::wrong_length:
      return "data ended early or left over";
    case JpegReason::wrong_marker:
      return "unexpected marker";
  }
  return "unknown";
}

JpegReason parse_jpeg_tables(std::span<const std::byte> bytes, JpegTableReferences& tables) noexcept {
  tables = {};
  if (bytes.size() < least_tables) return JpegReason::none;
  SegmentReader reader(bytes);
  if (!reader.starts_with_soi()) return JpegReason::not_a_jpeg;
  while (!reader.at_end()) {
    const unsigned marker = reader.marker();
    if (marker == eoi) break;
    std::span<const std::byte> content;
    // A restart interval among the tables is forgotten at the tile's SOI.
    const bool known =
        marker == dht || marker == dqt || marker == dri || marker == com || (marker >= app0 && marker <= app15);
    if (marker == 0) return JpegReason::damaged_header;
    if (!known) return JpegReason::odd_marker;
    if (!reader.segment(content)) return JpegReason::damaged_header;
    if (marker == dht && !read_huffman_tables(content, tables)) return JpegReason::damaged_header;
    if (marker == dqt && !read_quantisation_tables(content, tables)) return JpegReason::damaged_header;
    if (marker == dri && content.size() != 2) return JpegReason::damaged_header;
  }
  return JpegReason::none;
}

JpegReason parse_jpeg_header(std::span<const std::byte> bytes, const JpegTableReferences& tables,
                             JpegHeader& header) noexcept {
  header.component_count = 0;
  header.restart_interval = 0;
  header.tables = tables;
  header.marks = {};
  SegmentReader reader(bytes);
  if (!reader.starts_with_soi()) return JpegReason::not_a_jpeg;
  while (true) {
    const unsigned marker = reader.marker();
    if (marker == 0 || marker == eoi) return JpegReason::damaged_header;
    const bool skipped = marker == com || (marker >= app0 && marker <= app15);
    const bool frame = marker == sof0 || marker == sof1;
    if (!frame && is_other_frame(marker)) return JpegReason::other_coding;
    if (!skipped && !frame && marker != dht && marker != dqt && marker != dri && marker != sos) {
      return JpegReason::odd_marker;
    }
    std::span<const std::byte> content;
    if (!reader.segment(content)) return JpegReason::damaged_header;
    if (skipped) header.marks.add_segment(marker, content);
    if (marker == dht && !read_huffman_tables(content, header.tables)) return JpegReason::damaged_header;
    if (marker == dqt && !read_quantisation_tables(content, header.tables)) return JpegReason::damaged_header;
    if (marker == dri) {
      if (content.size() != 2) return JpegReason::damaged_header;
      header.restart_interval = byte_at(content, 0) << 8 | byte_at(content, 1);
    }
    if (frame) {
      if (header.component_count != 0) return JpegReason::damaged_header;
      const JpegReason reason = read_frame(content, header);
      if (reason != JpegReason::none) return reason;
    }
    if (marker == sos) {
      header.scan_offset = reader.position();
      return read_scan(content, header);
    }
  }
}

std::size_t jpeg_header_length(std::span<const std::byte> bytes) noexcept {
  SegmentReader reader(bytes);
  std::span<const std::byte> content;
  unsigned marker = reader.starts_with_soi() ? unsigned{soi} : 0U;
  while (marker != 0 && marker != eoi && marker != sos) {
    marker = reader.marker();
    if (marker != 0 && !reader.segment(content)) break;
  }
  return reader.position();
}

JpegReason parse_jpeg_tile(std::span<const std::byte> bytes, const JpegTableReferences& tables,
                           const TileDemand& demand, JpegHeader& header, PixelsOf& pixels_of) noexcept {
  const JpegReason reason = parse_jpeg_header(bytes, tables, header);
  if (reason != JpegReason::none) return reason;
  CodedFrame frame{header.width, header.height, header.component_count};
  frame.marks = header.marks;
  if (header.component_count == 3) {
    frame.marks.add_components([&header](std::size_t i) { return header.components[i].id; },
                               [&header](std::size_t i) {
                                 const JpegComponent& component = header.components[i];
                                 return component.horizontal << 4 | component.vertical;
                               },
                               [&header](std::size_t i) { return header.components[i].quantisation; });
  }
  const FrameVerdict verdict = judge_frame(demand, frame);
  pixels_of = verdict.pixels;
  switch (verdict.fault) {
    case FrameFault::components:
      return JpegReason::components;
    case FrameFault::size:
      return JpegReason::size;
    case FrameFault::colour:
      return JpegReason::colours;
    case FrameFault::none:
      break;
  }
  return JpegReason::none;
}

}  // namespace slidestream::cuda
