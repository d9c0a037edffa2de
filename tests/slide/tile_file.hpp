#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/test_images.hpp"
#include "slide/test_tiff.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

using Pixels = std::vector<std::uint8_t>;

/// Of PhotometricInterpretation and Compression.
inline constexpr std::uint64_t rgb_tag = 2, ycbcr_tag = 6, jpeg = 7;

/// A directory of tiles of 64 x 48.
inline TestDirectory directory_of(const std::vector<Bytes>& tiles, std::uint64_t photometric,
                                  std::uint64_t compression = jpeg, int samples = 3) {
  const auto across = static_cast<std::uint32_t>(tiles.size());
  TestDirectory directory = tiled_directory(64 * across, 48, 64, 48, samples);
  directory.set_short(259, compression).set_short(262, photometric);
  directory.tiles = tiles;
  return directory;
}

/// A TIFF file of its own folder.
struct TileFile {
  explicit TileFile(TestDirectory only) { tiff.directories = {std::move(only)}; }
  std::filesystem::path write() const { return folder.write("slide.tif", tiff.bytes()); }
  Pixels read(std::size_t level = 0) const { return read_level_rgb(*Slide::open(write()), level); }
  std::string error() const {
    const std::string text = read_error(write());
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
  TemporaryFolder folder;
  TestTiff tiff;
};

}  // namespace slidestream::test
