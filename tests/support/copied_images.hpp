#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/slide.hpp>

#include "slide/test_images.hpp"
#include "support/coded_slides.hpp"
#include "support/pipeline_runs.hpp"
#include "synth/synth.hpp"

/// \file
/// Slides whose tiles can be copied, and images that did.

namespace slidestream::test {

inline Config config_of_copies(const TemporaryFolder& folder, const std::string& name = "out") {
  Config config = config_for(backends().back());
  if (config.pipeline.backend == Backend::cuda) config.pipeline.memory_mib = 64;
  config.output.maps = MapFormat::none;
  config.output.dir = (folder / name).string();
  config.operators.run = {"identity"};
  config.image.format = ImageFormat::ome_tiff;
  config.image.compression = ImageCompression::copy;
  config.image.quality = 70;
  config.pipeline.strip_height = 128;
  config.analysis.window = 8;
  config.analysis.stride = 5;
  return config;
}

inline std::filesystem::path image_of(const Config& config, const std::string& slide) {
  return std::filesystem::path(config.output.dir) / "images" /
         (std::filesystem::path(slide).stem().string() + ".identity.ome.tif");
}

inline Bytes tile_of(const Slide& slide, std::size_t level, std::int64_t index) {
  const TileRange range = slide.tile(level, index);
  Bytes bytes(range.length);
  if (range.length > 0) slide.read(range.offset, bytes);
  return bytes;
}

/// Compares level 0 of an image with its slide: the tiles' bytes, and the pixels.
inline void check_copied(const std::string& slide_file, const std::filesystem::path& image_file) {
  const auto slide = Slide::open(slide_file);
  const auto image = Slide::open(image_file);
  const Level& level = slide->info().levels[0];
  REQUIRE(image->info().levels[0].columns == level.columns);
  REQUIRE(image->info().levels[0].rows == level.rows);
  CHECK(image->info().levels[0].colour == level.colour);
  for (std::int64_t i = 0; i < level.columns * level.rows; ++i) {
    CAPTURE(i);
    const Bytes expected = tile_of(*slide, 0, i);
    const Bytes found = tile_of(*image, 0, i);
    if (!expected.empty()) CHECK((found == expected));
    if (expected.empty()) CHECK(!found.empty());
  }
  CHECK((read_level_rgb(*image) == read_level_rgb(*slide)));
}

inline std::string coded_slide(const TemporaryFolder& folder, const std::string& name, const CodedSlide& slide) {
  const std::string file = folder / name;
  write_coded_slide(file, slide);
  return file;
}

/// Aperio's way: tables that tiles share, RGB without a marker.
inline std::string made_slide(const TemporaryFolder& folder, const std::string& name, SynthCodec codec, int missing) {
  SynthOptions options;
  options.width = 700;
  options.height = 530;
  options.tile = 80;
  options.codec = codec;
  options.levels = 1;
  options.missing_tiles = missing;
  const std::string file = folder / name;
  write_synthetic_slide(file, options);
  return file;
}

inline bool is_grey(const std::string& slide) { return Slide::open(slide)->info().levels[0].colour == Colour::grey; }

inline std::vector<std::string> slides_that_fit(const TemporaryFolder& folder) {
  return {
      made_slide(folder, "rgb.svs", SynthCodec::jpeg_rgb, 3),
      made_slide(folder, "420.svs", SynthCodec::jpeg_420, 3),
      made_slide(folder, "422.svs", SynthCodec::jpeg_422, 0),
      made_slide(folder, "444.svs", SynthCodec::jpeg_444, 2),
      made_slide(folder, "grey.svs", SynthCodec::jpeg_grey, 2),
      coded_slide(folder, "whole-420.tif", {.coding = TileCoding::jpeg_420, .missing_tiles = 2}),
      coded_slide(folder, "whole-rgb.tif", {.coding = TileCoding::jpeg_rgb, .width = 257, .missing_tiles = 1}),
      coded_slide(folder, "whole-444.tif", {.coding = TileCoding::jpeg_444, .height = 31, .tile_height = 64}),
      coded_slide(folder, "whole-grey.tif", {.coding = TileCoding::jpeg_grey, .missing_tiles = 3}),
      coded_slide(folder, "one-tile.tif", {.coding = TileCoding::jpeg_422, .width = 9, .height = 8}),
  };
}

}  // namespace slidestream::test
