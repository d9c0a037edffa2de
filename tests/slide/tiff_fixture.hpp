#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <slidestream/slide.hpp>
#include <string>

#include "slide/test_images.hpp"

/// \file
/// What tests share that write a TIFF file and open it as a slide.

namespace slidestream::test {

/// A level whose pixels are all 0, in tiles of 64 x 64 pixels.
inline TestDirectory black_level(std::uint32_t width, std::uint32_t height) {
  TestDirectory directory = tiled_directory(width, height, 64, 64, 1);
  directory.tiles.assign(std::size_t{(width + 63) / 64} * ((height + 63) / 64), Bytes(64 * 64));
  return directory;
}

/// An image whose pixels are all 0, in one strip.
inline TestDirectory black_strip(std::uint32_t width, std::uint32_t height) {
  TestDirectory directory = stripped_directory(width, height, height, 1);
  directory.tiles = {Bytes(std::size_t{width} * height)};
  return directory;
}

/// The sizes of the levels, each with a space behind it.
inline std::string sizes(const SlideInfo& info) {
  std::string text;
  for (const Level& l : info.levels) text += std::to_string(l.width) + "x" + std::to_string(l.height) + " ";
  return text;
}

/// The sizes of the levels, and behind a bar the names of the associated images.
inline std::string sizes_and_names(const SlideInfo& info) {
  std::string text = sizes(info) + "|";
  for (const std::string& name : info.associated) text += " " + name;
  return text;
}

class TiffFixture {
 public:
  std::filesystem::path write() const { return folder.write("slide.tif", tiff.bytes()); }
  std::shared_ptr<const Slide> open(const OpenOptions& options = {}) const { return Slide::open(write(), options); }
  std::string error(const OpenOptions& options = {}) const { return open_error(write(), options); }

  TemporaryFolder folder;
  TestTiff tiff;
};

}  // namespace slidestream::test
