#pragma once

#include <doctest/doctest.h>

#include <random>

#include "support/pixel_images.hpp"
#include "support/vector_units.hpp"
#include "support/wide.hpp"

namespace slidestream::test {

/// Images of all sizes from 1 x 1 on, whole and in rectangles, on every vector unit: `run(out, in)` must give what
/// `plain(in)`, the definition over whole images, gives.
template <class Run, class Plain>
void check_rectangles(PixelFormat from, PixelFormat to, const Border& border, const Run& run, const Plain& plain) {
  for (const std::int64_t unit : vector_units()) {
    const ForcedTarget forced(unit);
    INFO("vector unit " << unit);
    std::mt19937_64 random(5);
    for (int i = 0; i < wide_or_few(60, 40); ++i) {
      // Larger than a vector has pixels.
      Size size = random_size(random, i < 20 ? 5 : is_wide() ? 180 : 110);
      if (i == 0) size = {1, 1};
      if (i == 1) size = {1, 40};
      if (i == 2) size = {300, 1};
      INFO(size.width << " x " << size.height);
      const PixelImage image = random_image(random, size, from);
      const PixelImage expected = plain(image);
      PixelImage whole(size, to);
      run(whole.view(), image.view());
      CHECK(whole.same_pixels(expected, whole.rect));
      for (int j = 0; j < 3; ++j) {
        PixelImage part(random_rect(random, size), size, to, static_cast<std::size_t>(j));
        const PixelImage around = image.cut(with_border(part.rect, border, size), static_cast<std::size_t>(j));
        run(part.view(), around.view());
        INFO(part.rect.x << "," << part.rect.y << " " << part.rect.width << " x " << part.rect.height);
        CHECK(part.same_pixels(expected, part.rect));
      }
    }
  }
}

}  // namespace slidestream::test
