#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "support/pixel_images.hpp"
#include "support/plain_operators.hpp"

/// \file
/// An image with every pair of Sobel gradients: three rows of cells of three columns.

namespace slidestream::test {

struct GradientCells {
  // Of the diagonals f and r, the row's difference a and the column's l: gx = f + r + 2 a, gy = f - r + 2 l.
  struct Cell {
    int gx, gy, f, r, a, l;
  };

  GradientCells() : cells(all_cells()), image({static_cast<std::int64_t>(3 * cells.size()), 3}, luminance_format) {
    const auto differ = [&](std::int64_t x0, std::int64_t y0, std::int64_t x1, std::int64_t y1, int difference) {
      image.set(x0, y0, 0, static_cast<std::uint8_t>(std::max(-difference, 0)));
      image.set(x1, y1, 0, static_cast<std::uint8_t>(std::max(difference, 0)));
    };
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto x = static_cast<std::int64_t>(3 * i);
      differ(x, 0, x + 2, 2, cells[i].f);
      differ(x, 2, x + 2, 0, cells[i].r);
      differ(x, 1, x + 2, 1, cells[i].a);
      differ(x + 1, 0, x + 1, 2, cells[i].l);
    }
  }

  /// Cells whose middle isn't what the definition says: in 8 bits, or in float32.
  int wrong(const PixelImage& bytes, const PixelImage& floats) const {
    int count = 0;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const int s = cells[i].gx * cells[i].gx + cells[i].gy * cells[i].gy;
      const auto x = static_cast<std::int64_t>(3 * i + 1);
      count += bytes.at(x, 1) != plain_sobel_count(s) || floats.at<float>(x, 1) != plain_sobel_root(s);
    }
    return count;
  }

  std::vector<Cell> cells;
  PixelImage image;

 private:
  static std::vector<Cell> all_cells() {
    std::vector<Cell> made;
    for (int gx = 0; gx <= 1020; ++gx) {
      for (int gy = gx % 2; gy <= 1020; gy += 2) {
        const int f = std::min(255, (gx + gy) / 2);
        const int rest = (gx + gy) / 2 - f;
        if (rest > 510) continue;
        const int a = std::clamp(((gx - gy) / 2 + rest) / 2, rest - 255, 255);
        const int r = (gx - gy) / 2 + rest - 2 * a;
        if (std::abs(r) <= 255 && a >= -255 && std::abs(rest - a) <= 255) made.push_back({gx, gy, f, r, a, rest - a});
      }
    }
    return made;
  }
};

}  // namespace slidestream::test
