#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <slidestream/image.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <vector>

#include "cuda/tiles/windows.hpp"
#include "tiling/window_decoder.hpp"

namespace slidestream {

/// A rectangle of a tile that windows want.
struct WantedPart {
  std::int64_t tile = 0;  ///< its number in the level
  Rect part;              ///< pixels of the level
  std::size_t at = 0;     ///< of its first pixel among the decoded ones, bytes
  std::size_t pitch = 0;  ///< bytes from a row to the next
  bool is_white = false;  ///< the file hasn't got the tile
  bool by_cpu = false;

  std::size_t bytes() const { return pitch * static_cast<std::size_t>(part.height); }
};

/// What of a window lies around a part of it, which may be empty: four rectangles, of which some are.
std::array<Rect, 4> rects_around(const Rect& window, const Rect& part);

/// Which parts of which tiles windows want, and which rectangles of windows become of them.
class WindowCut {
 public:
  /// What `windows` want of a level's tiles; both stay as they are until the next call. No part takes more than
  /// `most_bytes` of decoded pixels, unless a row does.
  void cut(const Level& level, std::span<const WindowTarget> windows, std::size_t most_bytes);

  /// Row by row of the tiles.
  std::vector<WantedPart>& parts() noexcept { return parts_; }

  /// Adds the rectangles that parts [begin, end) give to windows.
  void describe(std::size_t begin, std::size_t end, std::vector<cuda::WindowPiece>& pieces) const;
  /// Adds what lies beyond the level, which gets a value.
  void describe_beyond(std::uint8_t fill, std::vector<cuda::WindowPiece>& pieces) const;

 private:
  const Level* level_ = nullptr;
  std::span<const WindowTarget> windows_;
  Rect tiles_;                         ///< that windows touch, columns and rows, and those between them
  std::vector<Rect> hulls_;            ///< of each of those, what windows want
  std::vector<std::size_t> first_of_;  ///< of each of those, its first part; one more at the end
  std::vector<WantedPart> parts_;
};

}  // namespace slidestream
