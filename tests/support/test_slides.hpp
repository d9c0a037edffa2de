#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/reference.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

/// Ways to store an image as a grey tiled TIFF.
enum class Coding { none, lzw, jpeg };

struct TestSlideOptions {
  std::uint32_t tile_width = 64;
  std::uint32_t tile_height = 64;
  Coding coding = Coding::none;
  std::vector<std::uint32_t> missing = {};  ///< tiles with a byte count of 0 (their pixels in the image become white)
};

/// Writes `image` as a grey slide. For jpeg, `image` becomes what libjpeg-turbo decodes. \throws std::runtime_error.
void write_test_slide(const std::filesystem::path& file, Image& image, const TestSlideOptions& options = {});

}  // namespace slidestream::test
