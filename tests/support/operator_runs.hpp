#pragma once

#include <algorithm>
#include <slidestream/operator.hpp>
#include <utility>
#include <vector>

#include "support/pixel_images.hpp"

/// \file
/// Operators at work without a graph.

namespace slidestream::test {

/// [0, size) cut at some random places, in a random order.
template <class Random>
std::vector<std::pair<std::int64_t, std::int64_t>> random_pieces(Random& random, std::int64_t size) {
  std::vector<std::int64_t> ends = {0, size};
  for (int i = 0; i < 3; ++i) ends.push_back(random_below(random, size + 1));
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces;
  for (std::size_t i = 1; i < ends.size(); ++i) pieces.emplace_back(ends[i - 1], ends[i] - ends[i - 1]);
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

/// The image that an operator makes, in blocks at random: each is given no more pixels than its footprint asks for, and
/// room for no more than its own.
template <class Random>
PixelImage run_in_blocks(const Operator& op, const PixelImage& image, const SlideParameters* parameters,
                         Random& random) {
  PixelImage made(image.image, op.products().at(0).format);
  const auto kernel = op.host_kernel();
  for (const auto& [row, rows] : random_pieces(random, image.image.height)) {
    for (const auto& [column, columns] : random_pieces(random, image.image.width)) {
      const Rect rect = {column, row, columns, rows};
      const PixelImage pixels = image.cut(with_border(rect, op.footprint().halo, image.image), random() % 3);
      PixelImage part(rect, image.image, made.format, random() % 3);
      OutputViews to;
      to.image = part.view();
      kernel->run(pixels.view(), {column, columns, row, rows}, to, parameters);
      copy_pixels(part_of(made.view(), rect), part.view());
    }
  }
  return made;
}

}  // namespace slidestream::test
