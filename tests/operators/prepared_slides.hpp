#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "image/mask.hpp"
#include "operators/registry.hpp"
#include "operators/tissue/tissue.hpp"
#include "slide/test_images.hpp"
#include "support/pixel_images.hpp"
#include "support/temporary_folder.hpp"

/// \file
/// Slides of made-up pictures, and operators that look at them before their pixels pass by.

namespace slidestream::test {

inline constexpr double tissue_mpp = 8.0;

inline TestDirectory level_of(const Picture& picture) {
  constexpr std::uint32_t tile = 32;
  TestDirectory directory = tiled_directory(static_cast<std::uint32_t>(picture.width),
                                            static_cast<std::uint32_t>(picture.height), tile, tile, 3);
  for (int y = 0; y < picture.height; y += static_cast<int>(tile)) {
    for (int x = 0; x < picture.width; x += static_cast<int>(tile)) {
      directory.tiles.push_back(to_bytes(cut(picture, x, y, tile, tile)));
    }
  }
  return directory;
}

/// A slide of such levels in a folder of its own, with so many micrometres a pixel.
class TestSlide {
 public:
  explicit TestSlide(const std::vector<TestDirectory>& levels, double mpp = tissue_mpp) : mpp_(mpp) {
    TestTiff tiff;
    tiff.directories = levels;
    path = folder.write("slide.svs", tiff.bytes());
  }
  explicit TestSlide(const Picture& picture, double mpp = tissue_mpp)
      : TestSlide(std::vector{level_of(picture)}, mpp) {}

  SlideContext context() {
    slide_ = Slide::open(path, {.mpp = mpp_});
    return {*slide_, 0, path, slide_->info().mpp};
  }

  TemporaryFolder folder;
  std::filesystem::path path;

 private:
  double mpp_;
  std::shared_ptr<const Slide> slide_;
};

inline PixelImage image_of(const Picture& picture) {
  PixelImage image({picture.width, picture.height}, rgb_format);
  image.bytes = to_bytes(picture);
  return image;
}

inline Mask mask_of(const Picture& picture, double mpp = tissue_mpp) {
  const PixelImage image = image_of(picture);
  return operators::find_tissue(image.view(), {1.0, 1.0}, image.image, mpp);
}

inline Config running(const std::string& name) {
  Config config;
  config.operators.run = {name};
  return config;
}

inline std::shared_ptr<const Operator> operator_of(const Config& config) {
  return operators::make_operators(config).at(0);
}

/// What is wrong with a slide; empty where nothing is.
inline std::string error_of(const Operator& op, const SlideContext& context) {
  try {
    op.prepare(context);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace slidestream::test
