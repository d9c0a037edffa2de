#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <slidestream/results.hpp>
#include <slidestream/slide.hpp>

namespace slidestream::report {

/// 8-bit RGB, row by row.
struct ColourImage {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

using Rgb = std::array<std::uint8_t, 3>;

/// The longer side of a slide's thumbnail, in pixels, where there is room for it.
inline constexpr int largest_thumbnail = 256;

/// The colour that a class of pixels is shown in; those of 16 classes differ.
Rgb class_colour(int label);

/// Labels that are classes, and not the rest.
struct Labels {
  int first = 0;
  int end = 0;
};

/// What bounds the reading of a file for a picture.
struct Reading {
  OpenOptions open = {};  ///< with `give_up`, and with the memory that all threads decode tiles in
  /// Where rows of pixels are held, of all threads; null: without a limit.
  std::shared_ptr<DecodeMemory> rows = nullptr;
  /// Called with the seconds that were waited for such memory. May be empty.
  std::function<void(double seconds)> waited = {};
};

/// A slide's or an image's thumbnail from its own levels: the smallest one with a longer side of at least `side`
/// pixels, averaged down to it. A slide smaller than that is shown as it is. \throws SlideError when it can't be read,
/// or all its levels are too large to be read for this; StoppedError
ColourImage read_thumbnail(const std::filesystem::path& path, int side, const Reading& reading = {});

/// The same of an image of labels, in the colours of their classes, others in grey: each pixel is one of the level's.
/// \throws SlideError; StoppedError
ColourImage read_label_thumbnail(const std::filesystem::path& path, int side, Labels classes,
                                 const Reading& reading = {});

/// Averaged down so that the longer side has at most `side` pixels.
ColourImage shrunk(const ColourImage& image, int side);

/// As JPEG. \throws Error when libjpeg fails.
std::string jpeg_bytes(const ColourImage& image, int quality);

/// As JPEG of at most `most` bytes: as large as fits, `largest_thumbnail` at most; empty when not even a very small one
/// does.
std::string fitting_jpeg(const ColourImage& image, std::size_t most);

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
