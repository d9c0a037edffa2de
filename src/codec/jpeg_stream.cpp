#include "codec/jpeg_stream.hpp"

#include <algorithm>
#include <cstring>
#include <slidestream/error.hpp>
#include <string_view>
#include <utility>

namespace slidestream {

namespace {

// Markers (ITU-T T.81, table B.1).
constexpr unsigned sof0 = 0xC0, dht = 0xC4, jpg = 0xC8, dac = 0xCC, sof15 = 0xCF;
constexpr unsigned rst0 = 0xD0, rst7 = 0xD7, soi = 0xD8, eoi = 0xD9, sos = 0xDA, dqt = 0xDB;
constexpr unsigned app0 = 0xE0, app14 = 0xEE, app15 = 0xEF, com = 0xFE;

class Reader {
 public:
  explicit Reader(std::span<const std::byte> stream) : stream_(stream) {}

  std::size_t at() const noexcept { return at_; }
  bool ended() const noexcept { return at_ == stream_.size(); }

  /// The marker that stands here, after any number of fill bytes.
  unsigned marker() {
    if (next() != 0xFF) fail();
    unsigned code = 0xFF;
    while (code == 0xFF) code = next();
    if (code == 0) fail();
    return code;
  }

  /// The content of the segment whose marker was read.
  std::span<const std::byte> content() {
    const std::size_t length = next() << 8;
    const std::size_t all = length | next();
    if (all < 2 || all - 2 > stream_.size() - at_) fail();
    at_ += all - 2;
    return stream_.subspan(at_ - (all - 2), all - 2);
  }

  /// Goes to the marker that ends the coded data which begin here, or to the stream's end.
  void pass_coded_data() noexcept {
    while (!ended()) {
      const void* found = std::memchr(stream_.data() + at_, 0xFF, stream_.size() - at_);
      if (found == nullptr) break;
      at_ = static_cast<std::size_t>(static_cast<const std::byte*>(found) - stream_.data());
      if (at_ + 1 == stream_.size()) break;
      const auto code = std::to_integer<unsigned>(stream_[at_ + 1]);
      const bool is_data = code == 0 || (code >= rst0 && code <= rst7);
      if (!is_data && code != 0xFF) return;
      at_ += is_data ? 2 : 1;
    }
    at_ = stream_.size();
  }

 private:
  [[noreturn]] static void fail() { throw TileError("the segments of the JPEG don't add up"); }

  unsigned next() {
    if (ended()) fail();
    return std::to_integer<unsigned>(stream_[at_++]);
  }

  std::span<const std::byte> stream_;
  std::size_t at_ = 0;
};

bool begins_with(std::span<const std::byte> content, std::string_view name) {
  return content.size() >= name.size() && std::memcmp(content.data(), name.data(), name.size()) == 0;
}

/// Whether a segment of an application says what colours are, and nothing else.
bool says_colours(unsigned marker, std::span<const std::byte> content) {
  constexpr std::size_t jfif_without_thumbnail = 14;
  constexpr std::size_t adobe = 12;
  if (marker == app0)
    return content.size() == jfif_without_thumbnail && begins_with(content, std::string_view("JFIF\0", 5));
  return marker == app14 && content.size() == adobe && begins_with(content, "Adobe");
}

bool is_picture(unsigned marker, std::span<const std::byte> content) {
  if (marker == com) return false;
  return marker < app0 || marker > app15 || says_colours(marker, content);
}

bool is_frame(unsigned marker) {
  return marker >= sof0 && marker <= sof15 && marker != dht && marker != jpg && marker != dac;
}

/// Bytes of a frame's header before its first component.
constexpr std::size_t before_components = 6;

JpegFrame frame_of(unsigned marker, std::span<const std::byte> content) {
  const auto at = [content](std::size_t i) { return std::to_integer<unsigned>(content[i]); };
  if (content.size() < before_components || content.size() != before_components + 3 * at(5)) {
    throw TileError("the header of the JPEG frame doesn't add up");
  }
  JpegFrame frame;
  frame.baseline = marker == sof0;
  frame.precision = static_cast<int>(at(0));
  frame.height = static_cast<int>(at(1) << 8 | at(2));
  frame.width = static_cast<int>(at(3) << 8 | at(4));
  frame.components = at(5);
  for (std::size_t i = 0; i < std::min(frame.components, frame.sampling.size()); ++i) {
    const unsigned factors = at(before_components + 3 * i + 1);
    frame.sampling[i] = {static_cast<std::uint8_t>(factors >> 4), static_cast<std::uint8_t>(factors & 15)};
  }
  return frame;
}

void add_components(JpegMarks& marks, const JpegFrame& frame, std::span<const std::byte> content) {
  if (frame.components != 3) return;
  const auto byte_of = [content](std::size_t component, std::size_t at) {
    return std::to_integer<unsigned>(content[before_components + 3 * component + at]);
  };
  marks.add_components(
      [&byte_of](std::size_t i) { return byte_of(i, 0); },
      [&frame](std::size_t i) { return std::pair(frame.sampling[i].horizontal, frame.sampling[i].vertical); },
      [&byte_of](std::size_t i) { return byte_of(i, 2); });
}

}  // namespace

JpegContent append_picture(std::vector<std::byte>& to, std::span<const std::byte> stream) {
  JpegContent found;
  Reader reader(stream);
  constexpr std::array<std::byte, 2> first = {std::byte{0xFF}, static_cast<std::byte>(soi)};
  if (!std::ranges::equal(stream.first(std::min(stream.size(), first.size())), first)) {
    throw TileError("it doesn't begin as a JPEG does");
  }
  reader.marker();
  bool scanned = false;
  std::size_t kept_from = 0;  // of the stream: what is before is in `to`, or left out
  const auto keep = [&](std::size_t end) {
    const auto part = stream.subspan(kept_from, end - kept_from);
    to.insert(to.end(), part.begin(), part.end());
  };
  while (!reader.ended()) {
    const std::size_t begin = reader.at();
    const unsigned marker = reader.marker();
    if (marker == eoi) {
      keep(reader.at());
      return found;
    }
    const std::span<const std::byte> content = reader.content();
    if (!is_picture(marker, content)) {
      keep(begin);
      kept_from = reader.at();
    }
    found.quantisation = found.quantisation || marker == dqt;
    found.huffman = found.huffman || marker == dht;
    if (!scanned) found.marks.add_segment(marker, content);
    if (is_frame(marker)) {
      found.frame = frame_of(marker, content);
      add_components(found.marks, found.frame, content);
    }
    scanned = scanned || marker == sos;
    if (marker == sos) reader.pass_coded_data();
  }
  keep(reader.at());
  to.insert(to.end(), {std::byte{0xFF}, static_cast<std::byte>(eoi)});
  return found;
}

}  // namespace slidestream
