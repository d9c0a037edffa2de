#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <slidestream/results.hpp>

namespace slidestream::report {

/// 8-bit luminance, row by row.
struct GreyImage {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

/// The longer side of a slide's thumbnail, in pixels, where there is room for it.
inline constexpr int largest_thumbnail = 256;

/// A slide's thumbnail from its own levels: the smallest one with a longer side of at least `side` pixels, averaged
/// down to it. A slide smaller than that is shown as it is. \throws SlideError when it can't be read, or all its levels
/// are too large to be read for this.
GreyImage read_thumbnail(const std::filesystem::path& path, int side);

/// Averaged down so that the longer side has at most `side` pixels.
GreyImage shrunk(const GreyImage& image, int side);

/// As JPEG, grey. \throws Error when libjpeg fails.
std::string jpeg_bytes(const GreyImage& image, int quality);

/// As JPEG of at most `most` bytes: as large as fits, `largest_thumbnail` at most; empty when not even a very small one
/// does.
std::string fitting_jpeg(const GreyImage& image, std::size_t most);

/// A map of windows for showing: averaged over blocks of windows, in 8 bits between the lowest and the highest value.
struct MapPicture {
  int columns = 0;
  int rows = 0;
  int block = 1;  ///< windows a side that a cell averages; fewer at the right and lower edges
  /// Of the mean and of the standard deviation.
  struct Channel {
    double low = 0.0;
    double high = 0.0;
    std::string cells;  ///< bytes, 0 for `low`, 255 for `high`
  };
  std::array<Channel, 2> channels;
};

/// The longest side of a map that is shown, in cells.
inline constexpr int largest_map = 192;

/// As finely as `most` bytes for both channels allow, at most `largest_map` cells a side; empty when the map is, or
/// when there is room for less than 8 x 8 cells.
MapPicture map_picture(const WindowMap& map, std::size_t most);

}  // namespace slidestream::report
