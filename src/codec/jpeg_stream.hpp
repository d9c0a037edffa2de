#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/jpeg_marks.hpp"

/// \file
/// The segments of a JPEG stream, for putting it into another file without what isn't picture.

namespace slidestream {

/// What a frame's header says (ITU-T T.81, B.2.2).
struct JpegFrame {
  struct Component {
    std::uint8_t horizontal = 0;  ///< sampling factors
    std::uint8_t vertical = 0;

    bool operator==(const Component&) const = default;
  };
  static constexpr std::size_t most_components = 4;

  bool baseline = false;  ///< sequential, Huffman codes, at most two tables of a kind (SOF0)
  int precision = 0;      ///< bits a sample
  int width = 0;          ///< pixels
  int height = 0;
  std::size_t components = 0;
  std::array<Component, most_components> sampling{};

  bool operator==(const JpegFrame&) const = default;
};

/// What a stream holds.
struct JpegContent {
  JpegFrame frame;            ///< without components where there is none: a stream of tables
  bool quantisation = false;  ///< it brings quantisation tables
  bool huffman = false;       ///< it brings Huffman tables
  JpegMarks marks;            ///< what is said of its colours before its first scan
};

/// Appends the stream to `to` without what isn't picture: comments, the data of applications, and what follows its end.
/// A JFIF header without a thumbnail and Adobe's marker, which say what the colours are, stay. An end that is missing
/// is added. All other bytes are as they are. \throws TileError when the segments don't add up.
JpegContent append_picture(std::vector<std::byte>& to, std::span<const std::byte> stream);

}  // namespace slidestream
