// Copies whose smaller levels are made of tiles that are decoded at half size.
#include <doctest/doctest.h>

#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <slidestream/forecast.hpp>

#include "slide/level_coding.hpp"
#include "support/copied_images.hpp"

using namespace slidestream;
using test::Bytes;
using test::check_copied;
using test::config_of_copies;
using test::image_of;
using test::is_grey;
using test::run;
using test::slides_that_fit;
using test::tile_of;

namespace {

/// A tile at half size by libjpeg; without bytes white.
test::Picture decode_at_half_size(const Slide& slide, std::int64_t index) {
  const Level& level = slide.info().levels[0];
  const int samples = level.colour == Colour::grey ? 1 : 3;
  test::Picture picture{static_cast<int>(level.tile_width / 2), static_cast<int>(level.tile_height / 2), samples, {}};
  picture.data.assign(static_cast<std::size_t>(picture.width * picture.height * samples), 255);
  const Bytes bytes = tile_of(slide, 0, index);
  if (bytes.empty()) return picture;
  jpeg_error_mgr errors;
  jpeg_decompress_struct jpeg;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  const std::vector<std::byte>& tables = coding_of(slide, 0).jpeg_tables;
  const auto read_header = [&jpeg](const std::vector<std::byte>& from) {
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(from.data()), from.size());
    jpeg_read_header(&jpeg, FALSE);
  };
  if (!tables.empty()) read_header(tables);
  read_header(bytes);
  jpeg.jpeg_color_space = samples == 1 ? JCS_GRAYSCALE : level.colour == Colour::rgb ? JCS_RGB : JCS_YCbCr;
  jpeg.out_color_space = samples == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg.scale_num = 4;
  jpeg.scale_denom = 8;
  jpeg_start_decompress(&jpeg);
  REQUIRE(static_cast<int>(jpeg.output_width) == picture.width);
  REQUIRE(static_cast<int>(jpeg.output_height) == picture.height);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = picture.data.data() +
                   static_cast<std::size_t>(jpeg.output_scanline) * static_cast<std::size_t>(picture.width * samples);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_destroy_decompress(&jpeg);
  return picture;
}

/// All of it.
test::Picture half_size(const Slide& slide) {
  const Level& level = slide.info().levels[0];
  const int samples = level.colour == Colour::grey ? 1 : 3;
  test::Picture whole{static_cast<int>((level.width + 1) / 2), static_cast<int>((level.height + 1) / 2), samples, {}};
  const auto row = static_cast<std::ptrdiff_t>(whole.width * samples);
  whole.data.resize(static_cast<std::size_t>(row * whole.height));
  for (std::int64_t i = 0; i < level.columns * level.rows; ++i) {
    const test::Picture tile = decode_at_half_size(slide, i);
    const int left = static_cast<int>(i % level.columns) * tile.width;
    const int top = static_cast<int>(i / level.columns) * tile.height;
    const int width = std::min(tile.width, whole.width - left);
    for (int y = 0; y < std::min(tile.height, whole.height - top); ++y) {
      std::memcpy(whole.data.data() + (top + y) * row + static_cast<std::ptrdiff_t>(left * samples), tile.at(0, y),
                  static_cast<std::size_t>(width * samples));
    }
  }
  return whole;
}

/// The picture as a slide without loss.
std::string lossless_slide(const test::TemporaryFolder& folder, const std::string& name, const test::Picture& picture) {
  test::TestTiff tiff;
  tiff.directories.push_back(test::tiled_directory(
      static_cast<std::uint32_t>(picture.width), static_cast<std::uint32_t>(picture.height), 64, 64, picture.samples));
  tiff.directories[0].set_short(259, 1).set_short(262, picture.samples == 1 ? 1 : 2);
  for (int y = 0; y < picture.height; y += 64) {
    for (int x = 0; x < picture.width; x += 64) {
      tiff.directories[0].tiles.push_back(test::to_bytes(test::cut(picture, x, y, 64, 64)));
    }
  }
  return folder.write(name, tiff.bytes()).string();
}

}  // namespace

TEST_CASE("shrunk on load, the other levels are those of the slide that libjpeg gives at half size (long)") {
  const test::TemporaryFolder folder;
  int i = 0;
  for (const std::string& slide : slides_that_fit(folder)) {
    CAPTURE(slide);
    Config config = config_of_copies(folder, "out" + std::to_string(i++));
    config.pipeline.backend = Backend::cpu;
    config.image.copy_levels = CopyLevels::shrink_on_load;
    if (is_grey(slide)) config.identity.colour = PixelColour::luminance;
    const auto result = run(config, {slide});
    test::require_done(result);
    check_copied(slide, image_of(config, slide));
    const auto opened = Slide::open(slide);
    const Level& level = opened->info().levels[0];
    CHECK(result.slides.at(0).width == level.width);
    CHECK(result.slides.at(0).height == level.height);
    const test::Picture half = half_size(*opened);
    if (!is_grey(slide)) {
      const auto shrunk = Slide::open(slide, {.shrink_on_load = true});
      CHECK(shrunk->coded_level(0).width == level.width);
      CHECK(shrunk->info().levels[0].width == half.width);
      CHECK((test::read_level_rgb(*shrunk) == half.data));
    }
    // Of that picture, written without loss, level 0 is what level 1 is here.
    Config other = config;
    other.output.dir = folder / "half";
    other.image.copy_levels = CopyLevels::exact;
    other.image.compression = ImageCompression::jpeg;
    other.image.tile = static_cast<int>(level.tile_width);
    const std::string half_slide = lossless_slide(folder, "half.tif", half);
    test::require_done(run(other, {half_slide}));
    const auto image = Slide::open(image_of(config, slide));
    const auto expected = Slide::open(image_of(other, half_slide));
    const bool one_tile = level.columns * level.rows == 1;
    REQUIRE(image->info().levels.size() == (one_tile ? 1 : expected->info().levels.size() + 1));
    for (std::size_t k = 1; k < image->info().levels.size(); ++k) {
      const Level& found = image->info().levels[k];
      CHECK(found.width == expected->info().levels[k - 1].width);
      for (std::int64_t tile = 0; tile < found.columns * found.rows; ++tile) {
        CAPTURE(k);
        CHECK((tile_of(*image, k, tile) == tile_of(*expected, k - 1, tile)));
      }
    }
    // The same file whatever the strips, with fewer levels, and forecast.
    const Bytes whole = test::read_file(image_of(config, slide));
    config.pipeline.strip_height = 1000;
    config.pipeline.threads = 3;
    CHECK(forecast_run(config, {slide}).slides.at(0).error.empty());
    test::require_done(run(config, {slide}));
    CHECK((test::read_file(image_of(config, slide)) == whole));
    for (const int levels : {1, 2}) {
      config.image.levels = levels;
      test::require_done(run(config, {slide}));
      const auto few = Slide::open(image_of(config, slide));
      REQUIRE(few->info().levels.size() == static_cast<std::size_t>(levels));
      check_copied(slide, image_of(config, slide));
      if (levels > 1 && !one_tile) CHECK((tile_of(*few, 1, 0) == tile_of(*image, 1, 0)));
    }
  }
}
