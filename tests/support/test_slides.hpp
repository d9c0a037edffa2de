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

/// Slides of several sizes, tilings and codings; 1,500 to 1,580 pixels high, or that part of it.
std::vector<std::string> varied_slides(const TemporaryFolder& folder, int count, std::int64_t part = 1);

/// One image, 700 pixels high, under many names. Every third is called "victim" and a number, the others "sound".
std::vector<std::string> equal_slides(const TemporaryFolder& folder, int count, Coding coding = Coding::none,
                                      std::int64_t width = 400);

/// The codings of `equal_slides` take turns: where there is a GPU, it decodes two of three slides.
std::vector<std::string> mixed_slides(const TemporaryFolder& folder, int count, std::int64_t width = 400);

}  // namespace slidestream::test
