// Images that take over the slide's own JPEG tiles.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/forecast.hpp>

#include "sink/file_digest.hpp"
#include "sink/image_sink.hpp"
#include "slide/copied_tiles.hpp"
#include "slide/marked_jpeg.hpp"
#include "support/copied_images.hpp"
#include "support/pipeline_runs.hpp"

using namespace slidestream;
using test::Bytes;
using test::check_copied;
using test::coded_slide;
using test::config_of_copies;
using test::image_of;
using test::is_grey;
using test::made_slide;
using test::run;
using test::slides_that_fit;
using test::tile_of;
using test::TileCoding;

namespace {

/// The other levels are those that a second compression has.
void check_other_levels(const std::filesystem::path& copied_file, const std::filesystem::path& encoded_file) {
  const auto copied = Slide::open(copied_file);
  const auto encoded = Slide::open(encoded_file);
  REQUIRE(copied->info().levels.size() == encoded->info().levels.size());
  for (std::size_t k = 1; k < copied->info().levels.size(); ++k) {
    const Level& level = copied->info().levels[k];
    REQUIRE(level.columns == encoded->info().levels[k].columns);
    for (std::int64_t i = 0; i < level.columns * level.rows; ++i) {
      CAPTURE(k);
      CHECK((tile_of(*copied, k, i) == tile_of(*encoded, k, i)));
    }
  }
}

/// Why the only slide of a run failed.
std::string cause(const Config& config, const std::string& slide) {
  const RunResult result = run(config, {slide});
  REQUIRE(result.slides.size() == 1);
  return result.slides[0].error;
}

/// A slide of four tiles of 64 x 64.
std::string slide_of(const test::TemporaryFolder& folder, const std::vector<Bytes>& tiles,
                     std::uint64_t photometric = 6, int samples = 3) {
  test::TestTiff tiff;
  tiff.directories.push_back(test::tiled_directory(128, 128, 64, 64, samples));
  tiff.directories[0].set_short(259, 7).set_short(262, photometric);
  tiff.directories[0].tiles = tiles;
  return folder.write("four.tif", tiff.bytes()).string();
}

Bytes text_segment(unsigned marker, const std::string& text) {
  Bytes bytes{std::byte{0xFF}, static_cast<std::byte>(marker), std::byte{0}, static_cast<std::byte>(text.size() + 2)};
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

}  // namespace

TEST_CASE("level 0 has the slide's own tiles, the other levels those that a second compression has (long)") {
  const test::TemporaryFolder folder;
  for (const std::string& slide : slides_that_fit(folder)) {
    CAPTURE(slide);
    Config config = config_of_copies(folder);
    if (is_grey(slide)) config.identity.colour = PixelColour::luminance;
    const RunResult result = run(config, {slide});
    test::require_done(result);
    check_copied(slide, image_of(config, slide));
    CHECK(path_content(image_of(config, slide))->digest == result.slides[0].artifacts.at(0).digest);
    Config encoded = config;
    encoded.output.dir = folder / "encoded";
    encoded.image.compression = ImageCompression::jpeg;
    encoded.image.tile = static_cast<int>(Slide::open(slide)->info().levels[0].tile_width);
    test::require_done(run(encoded, {slide}));
    check_other_levels(image_of(config, slide), image_of(encoded, slide));
  }
}

TEST_CASE("copies are the same files whatever the strips, depth, threads and order, and beside other operators") {
  if (test::left_to_release()) return;
  const test::TemporaryFolder folder;
  std::vector<std::string> slides = slides_that_fit(folder);
  std::erase_if(slides, is_grey);
  // One at a time, so that nothing of another slide, whose tiles have another side, can be in it.
  std::vector<RunResult> expected;
  for (const std::string& slide : slides) expected.push_back(run(config_of_copies(folder), {slide}));
  for (const RunResult& each : expected) test::require_done(each);
  int i = 0;
  for (const int height : {1, 200, 4000}) {
    for (const int depth : {1, 5}) {
      Config other = config_of_copies(folder, "out" + std::to_string(i++));
      other.pipeline.strip_height = height;
      other.pipeline.queue_depth = depth;
      other.pipeline.threads = depth;
      if (depth == 1) other.operators.run = {"spectrum", "identity"};
      const RunResult result = run(other, slides, test::dawdling);
      test::require_done(result);
      for (std::size_t s = 0; s < slides.size(); ++s) {
        REQUIRE(result.slides[s].artifacts.size() == 1);
        CHECK(result.slides[s].artifacts[0].digest == expected[s].slides[0].artifacts[0].digest);
      }
    }
  }
}

TEST_CASE("what isn't picture stays behind: comments, data of applications, what follows the end") {
  const test::TemporaryFolder folder;
  const test::Picture picture = test::make_stained_picture(128, 128, 3);
  std::vector<Bytes> plain, burdened;
  for (int i = 0; i < 4; ++i) {
    const Bytes tile = test::encode_jpeg(test::cut(picture, i % 2 * 64, i / 2 * 64, 64, 64));
    plain.push_back(tile);
    Bytes more(tile.begin(), tile.begin() + 2);
    for (const Bytes& segment : {text_segment(0xFE, "secret one"), text_segment(0xE1, "Exif secret two"),
                                 text_segment(0xE0, "JFXX secret three"), text_segment(0xEE, "Adobe secret four")}) {
      more.insert(more.end(), segment.begin(), segment.end());
    }
    more.insert(more.end(), tile.begin() + 2, tile.end());
    for (const char c : std::string_view("secret five")) more.push_back(static_cast<std::byte>(c));
    burdened.push_back(more);
  }
  const std::string clean = slide_of(folder, plain);
  const Config config = config_of_copies(folder);
  test::require_done(run(config, {clean}));
  check_copied(clean, image_of(config, clean));
  const Bytes expected = test::read_file(image_of(config, clean));
  // The same name and size, so that nothing else differs.
  const std::string slide = slide_of(folder, burdened);
  test::require_done(run(config, {slide}));
  CHECK((test::read_file(image_of(config, slide)) == expected));
}

TEST_CASE("a tile without an end gets one, and a tile shorter than a white one is followed by zeros") {
  const test::TemporaryFolder folder;
  const test::Picture picture = test::make_stained_picture(64, 64, 3);
  const Bytes tile = test::encode_jpeg(picture);
  const Bytes cut(tile.begin(), tile.end() - 2);
  test::Picture middle = picture;
  std::ranges::fill(middle.data, 128);  // a mean of 0 takes fewest bits
  const Bytes shorter = test::encode_jpeg(middle);
  const std::string slide = slide_of(folder, {cut, {}, shorter, tile});
  const Config config = config_of_copies(folder);
  test::require_done(run(config, {slide}));
  const auto image = Slide::open(image_of(config, slide));
  for (const std::int64_t i : {0, 3}) CHECK((tile_of(*image, 0, i) == tile));
  const Bytes white = tile_of(*image, 0, 1);
  Bytes expected = shorter;
  REQUIRE(expected.size() < white.size());
  expected.resize(white.size() + white.size() % 2);
  CHECK((tile_of(*image, 0, 2) == expected));
  CHECK((test::read_level_rgb(*image) == test::read_level_rgb(*Slide::open(slide))));
}

TEST_CASE("a slide whose tiles don't fit is refused in one line before anything of it is written (long)") {
  const test::TemporaryFolder folder;
  const Config config = config_of_copies(folder);
  const auto refused = [&](const std::string& slide, const Config& with) {
    const std::string error = cause(with, slide);
    CHECK(!std::filesystem::exists(image_of(with, slide)));
    CHECK(!std::filesystem::exists(std::filesystem::path(with.output.dir) / "images" /
                                   (std::filesystem::path(slide).stem().string() + ".identity.partial.ome.tif")));
    // It is said beforehand as well.
    const RunForecast forecast = forecast_run(with, {slide});
    REQUIRE(forecast.slides.size() == 1);
    CHECK("source: " + forecast.slides[0].error == error);
    return error;
  };
  const auto coded = [&](const test::CodedSlide& slide) {
    return refused(coded_slide(folder, "a.tif", slide), config);
  };
  const std::string begin = "source: its tiles can't be copied: ";
  CHECK(coded({.coding = TileCoding::jpeg2000_rgb}) == begin + "they are jpeg2000, not JPEG");
  CHECK(coded({.coding = TileCoding::rgb}) == begin + "they are uncompressed, not JPEG");
  CHECK(coded({.coding = TileCoding::jpeg_grey}) ==
        begin + "they are grey; identity.colour = \"luminance\" asks for that");
  CHECK(coded({.coding = TileCoding::jpeg_420, .tile_width = 80}) ==
        begin + "they are 80 x 64 pixels, not a square with a side that is a multiple of 16, 16 to 4096");
  CHECK(coded({.coding = TileCoding::jpeg_420, .tile_width = 72, .tile_height = 72}).find("72 x 72") !=
        std::string::npos);
  CHECK(coded({.coding = TileCoding::jpeg_420, .width = 40, .height = 40, .bad_tiles = 1}) ==
        begin + "tile 0: it doesn't begin as a JPEG does");

  Config luminance = config;
  luminance.identity.colour = PixelColour::luminance;
  CHECK(refused(coded_slide(folder, "b.tif", {.coding = TileCoding::jpeg_420}), luminance) ==
        begin + "they are in colour, and identity.colour asks for luminance");
  Config other_tile = config;
  other_tile.image.tile = 128;
  CHECK(refused(coded_slide(folder, "b.tif", {.coding = TileCoding::jpeg_420}), other_tile) ==
        begin + "their side is 64 pixels, and image.tile is 128");
  other_tile.image.tile = 64;
  CHECK(cause(other_tile, coded_slide(folder, "b.tif", {.coding = TileCoding::jpeg_420})).empty());

  const test::Picture picture = test::make_stained_picture(64, 64, 3);
  const auto four = [&](const Bytes& tile, std::uint64_t photometric = 6, int samples = 3) {
    return refused(slide_of(folder, {tile, tile, tile, tile}, photometric, samples), config);
  };
  CHECK(four(test::encode_jpeg(picture, {.progressive = true})) == begin + "tile 0: it isn't baseline JPEG");
  CHECK(four(test::encode_jpeg(picture, {.arithmetic = true})) == begin + "tile 0: it isn't baseline JPEG");
  CHECK(four(test::encode_jpeg(test::cut(picture, 0, 0, 64, 48))) ==
        begin + "tile 0: it has 64 x 48 pixels, not 64 x 64");
  CHECK(four(test::encode_jpeg(picture, {.chroma_horizontal = 2})) ==
        begin + "tile 0: its components are sampled as TIFF doesn't have it");
  const std::string unclear =
      begin + "tile 0: what its colours are can't be told from PhotometricInterpretation and its markers";
  CHECK(four(test::with_identifiers(test::encode_jpeg(picture), "RGB"), 2) == unclear);
  CHECK(four(test::with_jfif(test::with_adobe(test::encode_jpeg(picture), 0)), 2) == unclear);
  CHECK(four({}) == begin + "none of them is there");
}

TEST_CASE("a tile that isn't coded like the first one fails the slide, with its number") {
  const test::TemporaryFolder folder;
  const test::Picture picture = test::make_stained_picture(64, 64, 3);
  const Bytes tile = test::encode_jpeg(picture);
  Config config = config_of_copies(folder);
  const std::string slide = slide_of(folder, {tile, tile, test::encode_jpeg(picture, {.vertical = 1}), tile});
  CHECK(cause(config, slide) ==
        "encode: tile 2 (column 0, row 1) can't be copied: it isn't coded like the slide's first one");
  // White in place of bad ones is for what can't be decoded.
  config.decode.on_bad_tile = BadTilePolicy::white;
  config.output.dir = folder / "white";
  CHECK(!cause(config, slide).empty());
  const std::string bad = slide_of(folder, {Bytes(tile.begin(), tile.begin() + 300), tile, Bytes(9), tile});
  test::require_done(run(config, {bad}));
  const auto image = Slide::open(image_of(config, bad));
  CHECK((tile_of(*image, 0, 1) == tile));
  const std::vector<std::uint8_t> pixels = test::read_level_rgb(*image);
  // All of tiles 0 and 2, the left half.
  for (std::size_t y = 0; y < 128; ++y) {
    REQUIRE(std::ranges::count(pixels.begin() + static_cast<std::ptrdiff_t>(y * 384),
                               pixels.begin() + static_cast<std::ptrdiff_t>(y * 384 + 192), 255) == 192);
  }
}

TEST_CASE("a copy's tag is what the tiles' own markers say, and all of its tiles are of one kind") {
  const test::TemporaryFolder folder;
  const test::Picture picture = test::make_stained_picture(64, 64, 3);
  const Bytes jfif = test::with_jfif(test::encode_jpeg(picture));
  const Bytes rgb = test::encode_jpeg(picture, {.coding = test::JpegOptions::Coding::rgb});
  const Bytes adobe = test::with_adobe(rgb, 0), called_123 = test::with_identifiers(rgb, "\1\2\3");
  const Bytes even = test::encode_jpeg(picture, {.horizontal = 1, .vertical = 1});
  struct Kind {
    const Bytes& tile;
    std::uint64_t tag;
    Colour colour;
  };
  int number = 0;
  // Without a marker, names and tables of the components tell.
  for (const auto& [tile, tag, colour] : {Kind{jfif, 2, Colour::ycbcr},
                                          {jfif, 6, Colour::ycbcr},
                                          {adobe, 2, Colour::rgb},
                                          {adobe, 6, Colour::rgb},
                                          {even, 2, Colour::ycbcr},
                                          {called_123, 2, Colour::rgb}}) {
    const Config config = config_of_copies(folder, "out" + std::to_string(number++));
    // One is missing, and becomes a white one.
    const std::string slide = slide_of(folder, {tile, tile, {}, tile}, tag);
    test::require_done(run(config, {slide}));
    const auto image = Slide::open(image_of(config, slide));
    CHECK(image->info().levels[0].colour == colour);
    CHECK((tile_of(*image, 0, 0) == tile));
    CHECK((test::read_level_rgb(*image) == test::read_level_rgb(*Slide::open(slide))));
  }
  // RGB without a marker among them: its frame is the same, its colours aren't.
  const Bytes unnamed = test::with_identifiers(test::with_tables(even, {0, 0, 0}), {"\0\1\2", 3});
  const std::string mixed = slide_of(folder, {test::with_jfif(even), unnamed, unnamed, unnamed}, 2);
  CHECK(
      cause(config_of_copies(folder, "mixed"), mixed) ==
      "encode: tile 1 (column 1, row 0) can't be copied: its colours aren't coded like those of the slide's first one");
}

TEST_CASE("an image that isn't whole has the slide's tiles and white ones, and is read (long)") {
  const test::TemporaryFolder folder;
  for (const SynthCodec codec : {SynthCodec::jpeg_rgb, SynthCodec::jpeg_422}) {
    const auto slide = Slide::open(made_slide(folder, "a.svs", codec, 0));
    const Level& level = slide->info().levels[0];
    ImageDescription description;
    description.size = {level.width, level.height};
    description.format = rgb_format;
    ImageOptions options{.compression = TileCompression::copy, .tile = 80};
    options.copied = std::make_shared<const CopiedLevel>(copied_level(*slide, 0, rgb_format, BadTilePolicy::fail));
    const auto sink = make_ome_tiff_sink(folder / "a.ome.tif", description, options);
    const std::vector<std::uint8_t> pixels = test::read_level_rgb(*slide);
    for (std::int64_t tiles = 0; tiles <= level.columns; ++tiles) {
      CAPTURE(tiles);
      const auto image = Slide::open(folder / "a.partial.ome.tif");
      // The tiles that are there are the first ones of the first row.
      std::vector<std::uint8_t> expected(pixels.size(), 255);
      const auto row = static_cast<std::size_t>(3 * level.width);
      for (std::size_t y = 0; y < 80; ++y) {
        const auto there = static_cast<std::ptrdiff_t>(std::min(3 * level.width, 3 * 80 * tiles));
        const auto at = static_cast<std::ptrdiff_t>(y * row);
        std::copy(pixels.begin() + at, pixels.begin() + at + there, expected.begin() + at);
      }
      CHECK((test::read_level_rgb(*image) == expected));
      CHECK(std::ranges::all_of(test::read_level_rgb(*image, 1), [](int sample) { return sample == 255; }));
      if (tiles == level.columns) break;
      REQUIRE(sink->put(0, {tiles, 0}, EncodedTile(tile_of(*slide, 0, tiles))));
      sink->drain();
    }
  }
}

TEST_CASE("white tiles are white, however coarse the slide's tables are (long)") {
  const test::TemporaryFolder folder;
  const test::Picture picture = test::make_stained_picture(64, 64, 3);
  for (const int quality : {1, 2, 5, 11, 30, 100}) {
    CAPTURE(quality);
    for (const bool shared : {false, true}) {
      test::JpegOptions options{.quality = quality, .without_tables = shared};
      const Bytes tile = test::encode_jpeg(picture, options);
      test::TestTiff tiff;
      tiff.directories.push_back(test::tiled_directory(128, 128, 64, 64, 3));
      tiff.directories[0].set_short(259, 7).set_short(262, 6);
      if (shared) tiff.directories[0].set_bytes(347, test::encode_jpeg_tables(options));
      tiff.directories[0].tiles = {{}, tile, {}, tile};
      const std::string slide = folder.write("coarse.tif", tiff.bytes()).string();
      const Config config = config_of_copies(folder);
      test::require_done(run(config, {slide}));
      check_copied(slide, image_of(config, slide));
    }
  }
}

TEST_CASE("copying is for the tiles of slides, in OME-TIFF") {
  const test::TemporaryFolder folder;
  Config config = config_of_copies(folder);
  const auto refusal = [&] {
    try {
      check_runnable(config);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal().empty());
  config.operators.run = {"identity", "sobel"};
  CHECK(
      refusal() ==
      "image.compression = \"copy\" takes over the tiles of slides, and the operator sobel makes others; use \"auto\", "
      "or identity alone");
  config.operators.run = {"identity", "tissue", "spectrum"};
  CHECK(refusal().empty());
  config.image.format = ImageFormat::dzi;
  CHECK(refusal() == "image.compression = \"copy\" isn't in dzi; use auto or jpeg");
  config.image.format = ImageFormat::ome_zarr;
  CHECK(refusal() == "image.compression = \"copy\" isn't in ome-zarr; use auto, blosc-lz4, none or zstd");
  config.image.format = ImageFormat::ome_tiff;
  config.pipeline.backend = Backend::cpu;  // GPUs decode at full size
  config.image.copy_levels = CopyLevels::shrink_on_load;
  CHECK(refusal() ==
        "image.copy_levels = \"shrink-on-load\" decodes slides at half size, and other operators need all pixels; run "
        "identity alone, or use \"exact\"");
  config.operators.run = {"identity"};
  CHECK(refusal().empty());
  config.image.compression = ImageCompression::jpeg;
  CHECK(refusal() ==
        "image.copy_levels = \"shrink-on-load\" is for tiles that are copied; set image.compression to \"copy\"");
}
