#pragma once

#include <cstdint>
#include <vector>

#include "synth/slide_file.hpp"

/// \file
/// The pictures beside the levels: thumbnail, label, macro.

namespace slidestream::synth {

/// Averages a large picture, given row by row, into a small one of its shape.
class ThumbnailMaker {
 public:
  /// The result fits 1024 x 768 pixels and is no larger than the source.
  ThumbnailMaker(std::int64_t width, std::int64_t height);

  void add_row(std::int64_t y, const std::uint8_t* rgb);
  Picture finish() const;

 private:
  std::int64_t height_;
  int thumbnail_width_;
  int thumbnail_height_;
  std::vector<int> column_;         ///< of each source column
  std::vector<std::uint32_t> sum_;  ///< by thumbnail pixel and channel
  std::vector<std::uint32_t> count_;
};

/// A paper label with a code of squares and lines of writing that depend on the seed.
Picture make_label(std::uint64_t seed);

/// The glass seen from afar: the label at its left, the tissue in the middle.
Picture make_macro(const Picture& label, const Picture& thumbnail);

}  // namespace slidestream::synth
