#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "slide/tiff_fixture.hpp"

/// \file
/// TIFF files whose images show a slide or something else, and what is found in them.

namespace slidestream::test {

using Lines = std::vector<std::string>;

inline constexpr std::uint32_t slide_width = 1600;

/// What is seen at a pixel of an image whose pixels are `factor` of the slide's: blobs of the slide.
inline std::uint8_t slide_at(std::int64_t x, std::int64_t y, double factor) {
  const auto at = [factor](std::int64_t i) {
    return static_cast<std::int64_t>((static_cast<double>(i) + 0.5) * factor);
  };
  const std::int64_t across = at(x) / 200;
  const std::int64_t down = at(y) / 200;
  return static_cast<std::uint8_t>(40 + (across * 53 + down * 97) % 180);
}

/// Something else: dark signs on white paper.
inline std::uint8_t label_at(std::int64_t x, std::int64_t y) {
  return y / 8 % 3 == 1 && (x / 3 + y / 5) % 3 == 0 ? 20 : 250;
}

/// An image that shows the slide, in tiles of `side`.
inline TestDirectory view(std::uint32_t width, std::uint32_t height, bool of_slide = true, std::uint32_t side = 64) {
  TestDirectory directory = tiled_directory(width, height, side, side, 1);
  const double factor = static_cast<double>(slide_width) / width;
  for (std::uint32_t top = 0; top < height; top += side) {
    for (std::uint32_t left = 0; left < width; left += side) {
      Bytes tile(std::size_t{side} * side);
      for (std::uint32_t i = 0; i < side * side; ++i) {
        const std::int64_t x = left + i % side;
        const std::int64_t y = top + i / side;
        tile[i] = static_cast<std::byte>(of_slide ? slide_at(x, y, factor) : label_at(x, y));
      }
      directory.tiles.push_back(std::move(tile));
    }
  }
  return directory;
}

inline TestDirectory label(std::uint32_t width, std::uint32_t height) { return view(width, height, false); }

inline TestDirectory strips(std::uint32_t width, std::uint32_t height) {
  TestDirectory directory = stripped_directory(width, height, height, 1);
  directory.tiles = {Bytes(std::size_t{width} * height, std::byte{99})};
  return directory;
}

class StructureFixture : public TiffFixture {
 public:
  std::string found() const { return sizes_and_names(open()->info()); }
  Lines warnings() const { return open()->info().warnings; }
};

}  // namespace slidestream::test
