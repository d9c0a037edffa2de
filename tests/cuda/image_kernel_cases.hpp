#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "support/pixel_images.hpp"

/// \file
/// Images at any address for kernels of image operators, and the comparison of such a kernel with what the host makes.

namespace slidestream::test {

/// A rectangle of an image somewhere in memory that holds nothing else.
struct PlacedImage {
  static constexpr std::size_t alignment = 256;
  static constexpr auto untouched = std::byte{0xA5};

  PlacedImage(const Rect& held, Size size, PixelFormat of, std::size_t first, std::size_t padding)
      : rect(held),
        image(size),
        format(of),
        offset(first),
        pitch(static_cast<std::size_t>(held.width) * of.pixel_bytes() + padding),
        bytes(first + pitch * static_cast<std::size_t>(held.height) - padding, untouched) {}

  template <MemorySpace space>
  PixelView<space> view(std::byte* base) const {
    return {base + offset, static_cast<std::ptrdiff_t>(pitch), rect, image, format};
  }

  void fill(const PixelImage& from) { copy_pixels(view<MemorySpace::host>(bytes.data()), from.view()); }

  Rect rect;
  Size image;
  PixelFormat format;
  std::size_t offset;  ///< of the first pixel from the memory's begin, which is aligned
  std::size_t pitch;
  std::vector<std::byte> bytes;
};

/// Bytes to the next multiple of 16.
inline std::size_t to_whole_vectors(std::size_t bytes) { return (16 - bytes % 16) % 16; }

/// A rectangle and what is read for it. Fast ways are for whole vectors: so it is half of the time.
struct PlacedCase {
  PlacedImage out;
  PlacedImage in;
};

template <class Random>
PlacedCase random_placed_case(Random& random, const PixelImage& image, PixelFormat to, const Border& border) {
  const bool aligned = random() % 2 == 0;
  Rect rect = random() % 3 == 0 ? Rect{0, 0, image.image.width, image.image.height} : random_rect(random, image.image);
  const Rect around = with_border(rect,
                                  {border.left + random_below(random, 3), border.top + random_below(random, 2),
                                   border.right + random_below(random, 3), border.bottom},
                                  image.image);
  const std::size_t pixel_bytes = image.format.pixel_bytes();
  const std::size_t left = static_cast<std::size_t>(rect.x - around.x) * pixel_bytes;
  const std::size_t row = static_cast<std::size_t>(around.width) * pixel_bytes;
  const std::size_t out_row = static_cast<std::size_t>(rect.width) * to.pixel_bytes();
  const std::size_t sample = bytes_of(to.sample);
  const auto any = [&](std::size_t unit) { return unit * static_cast<std::size_t>(random_below(random, 24)); };
  PlacedCase made = aligned ? PlacedCase{{rect, image.image, to, 32, to_whole_vectors(out_row) + 16},
                                         {around, image.image, image.format, to_whole_vectors(left),
                                          to_whole_vectors(row) + 16 * (random() % 2)}}
                            : PlacedCase{{rect, image.image, to, any(sample), any(sample)},
                                         {around, image.image, image.format, any(1), any(1)}};
  made.in.fill(image.cut(around));
  return made;
}

/// `run(out, in)` has a kernel make `out`'s pixels; `host(out, in)` makes the same ones on the host. No byte besides
/// may change.
template <class Run, class Host>
void check_image_kernel(int cases, Size most, PixelFormat from, PixelFormat to, const Border& border, const Run& run,
                        const Host& host) {
  std::mt19937_64 random(11);
  for (int i = 0; i < cases; ++i) {
    Size size = i % 2 == 0 ? random_size(random, 40)
                           : Size{1 + random_below(random, most.width), 1 + random_below(random, most.height)};
    if (i == 0) size = {1, 1};
    if (i == 1) size = most;
    if (i == 2) size = {1, 37};
    if (i == 3) size = {77, 1};
    if (i == 4) size = {2, 2};
    const PixelImage image = random_image(random, size, from);
    PlacedCase made = random_placed_case(random, image, to, border);
    PlacedImage expected = made.out;
    host(expected.view<MemorySpace::host>(expected.bytes.data()), image.view());
    run(made.out, made.in);
    const Rect& rect = made.out.rect;
    INFO(size.width << " x " << size.height << ": " << rect.x << "," << rect.y << " " << rect.width << " x "
                    << rect.height << " at " << made.out.offset << ", " << made.in.offset);
    REQUIRE(made.out.bytes == expected.bytes);
  }
}

}  // namespace slidestream::test
