#pragma once

#include <slidestream/image.hpp>

#include <cstdint>
#include <span>
#include <vector>

/// \file
/// A mask of a slide: which parts of it are tissue, on a coarse grid.

namespace slidestream {

/// How a grid lies on level 0: a pixel of the grid is `x` pixels of level 0 wide and `y` high.
struct GridScale {
  double x = 1.0;
  double y = 1.0;
};

/// 1 where there is tissue, else 0. Pixel (i, j) covers [i scale.x, (i + 1) scale.x) x [j scale.y, (j + 1) scale.y) of
/// level 0, as far as level 0 goes; its centre is at ((i + 1/2) scale.x, (j + 1/2) scale.y).
struct Mask {
  Size size;                         ///< in mask pixels
  GridScale scale;                   ///< level 0 pixels a mask pixel
  Size level0;                       ///< the slide's size
  std::vector<std::uint8_t> pixels;  ///< size.width x size.height, row-major

  std::span<std::uint8_t> row(std::int64_t y) noexcept {
    return std::span(pixels).subspan(static_cast<std::size_t>(y * size.width), static_cast<std::size_t>(size.width));
  }
  std::span<const std::uint8_t> row(std::int64_t y) const noexcept {
    return std::span(pixels).subspan(static_cast<std::size_t>(y * size.width), static_cast<std::size_t>(size.width));
  }
};

/// A mask of a bit per pixel: what is kept of one while it isn't worked with.
class PackedMask {
 public:
  explicit PackedMask(const Mask& mask);
  Mask unpack() const;

 private:
  Size size_;
  GridScale scale_;
  Size level0_;
  std::vector<bool> pixels_;
};

/// An empty mask of this size.
Mask empty_mask(Size size, GridScale scale, Size level0);

/// The part of the mask's pixels that are tissue, 0 to 1.
double tissue_share(const Mask& mask);

/// Counts the tissue in any rectangle of a mask by four look-ups: a summed-area table (Crow, SIGGRAPH 1984), 4 bytes a
/// mask pixel. Thread-safe.
class MaskTable {
 public:
  explicit MaskTable(const Mask& mask);

  /// Whether a window is tissue: of the mask pixels whose centres lie in it, at least `share` (0 to 1) are; with 0 any
  /// of them. A window that no centre lies in is what the mask pixel under its middle is. \param window in pixels of a
  /// level with this `level` scale; its right and bottom edges are outside.
  bool is_tissue(const Rect& window, const GridScale& level, double share) const noexcept;

  /// The share of a window that is tissue, 0 to 1, as `is_tissue` counts it.
  double share_of(const Rect& window, const GridScale& level) const noexcept;

  /// Tissue in columns [left, right) and rows [top, bottom) of the mask, which lie inside it.
  std::int64_t tissue_in(std::int64_t left, std::int64_t top, std::int64_t right, std::int64_t bottom) const noexcept;

 private:
  struct Count {
    std::int64_t tissue = 0;
    std::int64_t all = 1;
  };
  /// Mask pixels of a window.
  Count count(const Rect& window, const GridScale& level) const noexcept;

  Size size_;
  GridScale scale_;
  std::vector<std::uint32_t> sums_;  ///< of everything above and to the left, one row and one column more than the mask
};

}  // namespace slidestream
