#include "synth/synth.hpp"

#include <doctest/doctest.h>
#include <tiffio.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "support/test_slides.hpp"

namespace slidestream {
namespace {

using test::TemporaryFolder;

SynthOptions small_slide() {
  SynthOptions options;
  options.width = 700;
  options.height = 500;
  options.tile = 128;
  options.levels = 2;
  return options;
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The value of element (0048,`element`) of DICOM, a float.
float float_in(const std::string& file, char element) {
  const std::string header{'\x48', '\0', element, '\0', 'F', 'L', '\x04', '\0'};
  const std::size_t at = file.find(header);
  float value = 0.0F;
  if (at != std::string::npos) std::memcpy(&value, file.data() + at + header.size(), sizeof value);
  return value;
}

std::ptrdiff_t files_in(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

std::vector<std::uint8_t> luminance(const Slide& slide, std::size_t level) {
  const Level& of = slide.info().levels.at(level);
  std::vector<std::uint8_t> plane(static_cast<std::size_t>(of.width * of.height));
  read_luminance(slide, level, 0, 0, {plane.data(), of.width, of.width, of.height});
  return plane;
}

double mean(const std::vector<std::uint8_t>& plane) {
  double sum = 0.0;
  for (const std::uint8_t value : plane) sum += value;
  return sum / static_cast<double>(plane.size());
}

double mean_distance(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

struct TiffCloser {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};
using Tiff = std::unique_ptr<TIFF, TiffCloser>;

TEST_CASE("the same options give the same bytes, with any number of threads (long)") {
  const TemporaryFolder folder;
  for (const int distinct : {0, 5, 40}) {
    CAPTURE(distinct);
    SynthOptions options = small_slide();
    options.distinct = distinct;
    options.threads = 1;
    write_synthetic_slide(folder / "one.svs", options);
    write_synthetic_slide(folder / "again.svs", options);
    options.threads = 4;
    write_synthetic_slide(folder / "four.svs", options);
    const std::string one = contents(folder / "one.svs");
    CHECK((one == contents(folder / "again.svs")));
    CHECK((one == contents(folder / "four.svs")));
    options.seed = 2;
    write_synthetic_slide(folder / "other.svs", options);
    CHECK((one != contents(folder / "other.svs")));
  }
}

TEST_CASE("every codec shows the same tissue (long)") {
  const TemporaryFolder folder;
  SynthOptions options = small_slide();
  options.quality = 90;
  options.codec = SynthCodec::none;
  write_synthetic_slide(folder / "plain.svs", options);
  const std::vector<std::uint8_t> plain = luminance(*Slide::open(folder / "plain.svs"), 0);

  struct Expected {
    SynthCodec codec;
    Codec read_as;
    Colour colour;
  };
  for (const auto& expected : {Expected{SynthCodec::jpeg_420, Codec::jpeg, Colour::ycbcr},
                               Expected{SynthCodec::jpeg_422, Codec::jpeg, Colour::ycbcr},
                               Expected{SynthCodec::jpeg_444, Codec::jpeg, Colour::ycbcr},
                               Expected{SynthCodec::jpeg_rgb, Codec::jpeg, Colour::rgb},
                               Expected{SynthCodec::jpeg_grey, Codec::jpeg, Colour::grey},
                               Expected{SynthCodec::jpeg2000, Codec::jpeg2000, Colour::rgb},
                               Expected{SynthCodec::none, Codec::none, Colour::rgb}}) {
    CAPTURE(static_cast<int>(expected.codec));
    options.codec = expected.codec;
    write_synthetic_slide(folder / "slide.svs", options);
    const auto slide = Slide::open(folder / "slide.svs");
    const SlideInfo& info = slide->info();
    REQUIRE(info.levels.size() == 2);
    CHECK(info.format == "aperio");
    for (const Level& level : info.levels) {
      CHECK(level.codec == expected.read_as);
      CHECK(level.colour == expected.colour);
      CHECK(level.tile_width == options.tile);
    }
    const std::vector<std::uint8_t> plane = luminance(*slide, 0);
    CHECK(mean_distance(plane, plain) < 4.0);
    CHECK(std::abs(mean(plane) - mean(plain)) < 0.5);
  }
}

TEST_CASE("the description says what a scanner says") {
  const TemporaryFolder folder;
  SynthOptions options = small_slide();
  options.mpp = 0.5;
  write_synthetic_slide(folder / "slide.svs", options);
  const auto slide = Slide::open(folder / "slide.svs");
  const SlideInfo& info = slide->info();
  REQUIRE(info.mpp.has_value());
  REQUIRE(info.magnification.has_value());
  CHECK(info.mpp.value() == doctest::Approx(0.5));
  CHECK(info.magnification.value() == doctest::Approx(20.0));
  CHECK(info.properties.at("MPP") == "0.5000");
  CHECK(info.properties.at("OriginalWidth") == "700");
  CHECK(info.associated == std::vector<std::string>{"thumbnail", "label", "macro"});
}

TEST_CASE("sizes that tiles don't divide, and sizes below a tile (long)") {
  const TemporaryFolder folder;
  struct Size {
    std::int64_t width;
    std::int64_t height;
    int tile;
  };
  for (const Size& size : {Size{257, 255, 256}, Size{1, 1, 256}, Size{3, 700, 240}, Size{513, 1, 16},
                           Size{700, 627, 64}, Size{37, 29, 16}, Size{300, 200, 1024}}) {
    for (const int distinct : {0, 1, 2, 400}) {
      CAPTURE(size.width);
      CAPTURE(size.height);
      CAPTURE(distinct);
      SynthOptions options;
      options.width = size.width;
      options.height = size.height;
      options.tile = size.tile;
      options.distinct = distinct;
      const SynthSummary summary = write_synthetic_slide(folder / "slide.svs", options);
      CHECK(summary.bytes == std::filesystem::file_size(folder / "slide.svs"));
      const auto slide = Slide::open(folder / "slide.svs");
      const SlideInfo& info = slide->info();
      REQUIRE(info.levels.size() == static_cast<std::size_t>(summary.levels));
      CHECK(info.levels[0].width == size.width);
      CHECK(info.levels[0].height == size.height);
      CHECK(info.levels[0].columns * info.levels[0].rows == summary.tiles);
      for (std::size_t level = 0; level < info.levels.size(); ++level) luminance(*slide, level);
    }
  }
}

TEST_CASE("lower levels are level 0 reduced") {
  const TemporaryFolder folder;
  for (const int distinct : {0, 20}) {
    SynthOptions options;
    options.width = 1300;
    options.height = 1090;
    options.tile = 64;
    options.codec = SynthCodec::none;
    options.distinct = distinct;
    write_synthetic_slide(folder / "slide.svs", options);
    const auto slide = Slide::open(folder / "slide.svs");
    REQUIRE(slide->info().levels.size() == 3);
    for (std::size_t level = 1; level < 3; ++level) {
      const Level& above = slide->info().levels[level - 1];
      const Level& below = slide->info().levels[level];
      CHECK(below.width == above.width / 4);
      CHECK(below.height == above.height / 4);
      const std::vector<std::uint8_t> large = luminance(*slide, level - 1);
      const std::vector<std::uint8_t> reduced = luminance(*slide, level);
      int furthest = 0;
      for (std::int64_t y = 0; y < below.height; ++y) {
        for (std::int64_t x = 0; x < below.width; ++x) {
          int sum = 0;
          for (int i = 0; i < 16; ++i)
            sum += large[static_cast<std::size_t>((y * 4 + i / 4) * above.width + x * 4 + i % 4)];
          furthest = std::max(furthest, std::abs(sum / 16 - reduced[static_cast<std::size_t>(y * below.width + x)]));
        }
      }
      CHECK(furthest <= 2);
    }
  }
}

TEST_CASE("a slide has glass and tissue (long)") {
  const TemporaryFolder folder;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    for (const int distinct : {0, 60}) {
      CAPTURE(seed);
      CAPTURE(distinct);
      SynthOptions options;
      options.width = 1500;
      options.height = 1000;
      options.tile = 64;
      options.seed = seed;
      options.distinct = distinct;
      options.codec = SynthCodec::jpeg_grey;
      write_synthetic_slide(folder / "slide.svs", options);
      const std::vector<std::uint8_t> plane = luminance(*Slide::open(folder / "slide.svs"), 0);
      double glass = 0.0;
      double stained = 0.0;
      for (const std::uint8_t value : plane) {
        glass += value >= 236 ? 1.0 : 0.0;
        stained += value < 200 ? 1.0 : 0.0;
      }
      CHECK(glass / static_cast<double>(plane.size()) > 0.05);
      CHECK(stained / static_cast<double>(plane.size()) > 0.25);
    }
  }
}

TEST_CASE("defects are as many as asked for, on level 0 only (long)") {
  const TemporaryFolder folder;
  for (const SynthCodec codec :
       {SynthCodec::jpeg_420, SynthCodec::jpeg_rgb, SynthCodec::jpeg_grey, SynthCodec::jpeg2000}) {
    for (const int distinct : {0, 3}) {
      CAPTURE(static_cast<int>(codec));
      SynthOptions options = small_slide();
      options.codec = codec;
      options.distinct = distinct;
      options.missing_tiles = 4;
      options.corrupt_tiles = 7;
      write_synthetic_slide(folder / "slide.svs", options);
      const auto slide = Slide::open(folder / "slide.svs");
      TileDecoder decoder;
      for (std::size_t level = 0; level < 2; ++level) {
        const Level& of = slide->info().levels[level];
        std::vector<std::uint8_t> pixels(static_cast<std::size_t>(of.tile_width * of.tile_height));
        int missing = 0;
        int corrupt = 0;
        for (std::int64_t i = 0; i < of.columns * of.rows; ++i) {
          const TileRange range = slide->tile(level, i);
          if (range.length == 0) {
            CHECK(range.offset == 0);
            ++missing;
            continue;
          }
          std::vector<std::byte> bytes(range.length);
          slide->read(range.offset, bytes);
          try {
            decoder.decode(*slide, level, i, bytes, 0, 0,
                           {pixels.data(), of.tile_width, of.tile_width, of.tile_height});
          } catch (const TileError&) {
            ++corrupt;
          }
        }
        CHECK(missing == (level == 0 ? 4 : 0));
        CHECK(corrupt == (level == 0 ? 7 : 0));
      }
    }
  }
}

TEST_CASE("a slide may miss all its tiles but one") {
  const TemporaryFolder folder;
  SynthOptions options = small_slide();
  options.missing_tiles = 23;
  write_synthetic_slide(folder / "slide.svs", options);
  const auto slide = Slide::open(folder / "slide.svs");
  int present = 0;
  for (std::int64_t i = 0; i < 24; ++i) present += slide->tile(0, i).length > 0 ? 1 : 0;
  CHECK(present == 1);
}

TEST_CASE("repeated tiles don't share their bytes") {
  const TemporaryFolder folder;
  SynthOptions options = small_slide();
  options.distinct = 1;
  write_synthetic_slide(folder / "slide.svs", options);
  const auto slide = Slide::open(folder / "slide.svs");
  const TileRange first = slide->tile(0, 0);
  for (std::int64_t i = 1; i < 24; ++i) {
    const TileRange before = slide->tile(0, i - 1);
    CHECK(slide->tile(0, i).length == first.length);
    CHECK(slide->tile(0, i).offset >= before.offset + before.length);
  }
}

TEST_CASE("a DICOM slide has the pixels of the TIFF slide, however its frames are kept (long)") {
  const TemporaryFolder folder;
  int row = 0;
  for (const SynthCodec codec : {SynthCodec::jpeg_420, SynthCodec::jpeg_422, SynthCodec::jpeg_444, SynthCodec::jpeg_rgb,
                                 SynthCodec::jpeg_grey, SynthCodec::jpeg2000, SynthCodec::none}) {
    CAPTURE(static_cast<int>(codec));
    int column = row++;
    SynthOptions options;
    options.width = 700;
    options.height = 530;
    options.tile = 128;
    options.codec = codec;
    options.missing_tiles = 3;
    write_synthetic_slide(folder / "slide.svs", options);
    const auto expected = Slide::open(folder / "slide.svs");
    options.format = SynthFormat::dicom;
    for (const SynthOffsets offsets : {SynthOffsets::none, SynthOffsets::basic, SynthOffsets::extended}) {
      for (const int parts : {1, 3}) {
        // How frames are kept is seen with the first codec; the others take turns.
        if (row > 1 && ++column % 3 != 0) continue;
        CAPTURE(static_cast<int>(offsets));
        CAPTURE(parts);
        options.offsets = offsets;
        options.parts = parts;
        const SynthSummary summary = write_synthetic_slide(folder / "series", options);
        CHECK(summary.tiles == 30);
        CHECK(summary.levels == 2);
        CHECK(files_in(folder / "series") == parts + 4);
        const auto slide = Slide::open(folder / "series");
        CHECK(slide->info().format == "dicom");
        CHECK(slide->info().warnings.empty());
        CHECK(slide->info().associated == std::vector<std::string>{"label", "macro", "thumbnail"});
        CHECK(slide->info().mpp.value_or(0) == doctest::Approx(0.25));
        REQUIRE(slide->info().levels.size() == expected->info().levels.size());
        for (std::size_t level = 0; level < 2; ++level) {
          CHECK(luminance(*slide, level) == luminance(*expected, level));
        }
      }
    }
  }
  // Each file says what the image measures, in millimetres.
  SynthOptions options;
  options.width = 700;
  options.height = 500;
  options.format = SynthFormat::dicom;
  write_synthetic_slide(folder / "measured", options);
  for (const char* name : {"level-0.dcm", "level-1.dcm", "label.dcm"}) {
    CAPTURE(name);
    CHECK(float_in(contents(folder / "measured" / name), 1) == doctest::Approx(0.175));
  }
  for (const char* name : {"level-0.dcm", "level-1.dcm"}) {
    CAPTURE(name);
    CHECK(float_in(contents(folder / "measured" / name), 2) == doctest::Approx(0.125));
  }
  std::filesystem::remove_all(folder / "measured");
  // The same options give the same files.
  options.width = options.height = 300;
  options.format = SynthFormat::dicom;
  write_synthetic_slide(folder / "once", options);
  write_synthetic_slide(folder / "twice", options);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "once")) {
    CHECK(contents(entry.path()) == contents(folder / "twice" / entry.path().filename()));
  }
  // A folder that holds something else stays.
  std::ofstream(folder / "twice" / "notes.txt") << "mine";
  CHECK_THROWS_WITH_AS(write_synthetic_slide(folder / "twice", options),
                       ((folder / "twice").string() + ": holds notes.txt, which isn't DICOM").c_str(), OutputError);
  CHECK(std::filesystem::exists(folder / "twice" / "level-0.dcm"));
  CHECK(files_in(folder.path()) == 4);
}

TEST_CASE("BigTIFF on demand") {
  const TemporaryFolder folder;
  SynthOptions options = small_slide();
  CHECK_FALSE(write_synthetic_slide(folder / "slide.svs", options).big_tiff);
  CHECK_FALSE(Slide::open(folder / "slide.svs")->info().container == "BigTIFF");
  const std::vector<std::uint8_t> classic = luminance(*Slide::open(folder / "slide.svs"), 0);
  options.big_tiff = true;
  CHECK(write_synthetic_slide(folder / "slide.svs", options).big_tiff);
  CHECK(Slide::open(folder / "slide.svs")->info().container == "BigTIFF");
  CHECK((classic == luminance(*Slide::open(folder / "slide.svs"), 0)));
}

TEST_CASE("tiles and tags are formed as Aperio forms them") {
  const TemporaryFolder folder;
  SynthOptions options = small_slide();
  options.codec = SynthCodec::jpeg_rgb;
  write_synthetic_slide(folder / "slide.svs", options);
  const Tiff tiff(TIFFOpen((folder / "slide.svs").c_str(), "rm"));
  REQUIRE(tiff);
  std::uint16_t photometric = 0;
  std::uint16_t across = 0;
  std::uint16_t down = 0;
  std::uint32_t length = 0;
  void* tables = nullptr;
  CHECK(TIFFGetField(tiff.get(), TIFFTAG_PHOTOMETRIC, &photometric) == 1);
  CHECK(photometric == PHOTOMETRIC_RGB);
  CHECK(TIFFGetField(tiff.get(), TIFFTAG_YCBCRSUBSAMPLING, &across, &down) == 1);
  CHECK(across == 2);
  CHECK(down == 2);
  CHECK(TIFFGetField(tiff.get(), TIFFTAG_JPEGTABLES, &length, &tables) == 1);
  CHECK(length == 289);  // one table of each sort
  std::vector<std::uint8_t> tile(static_cast<std::size_t>(TIFFTileSize(tiff.get())));
  REQUIRE(TIFFReadRawTile(tiff.get(), 0, tile.data(), static_cast<tmsize_t>(tile.size())) > 30);
  // SOI, then the frame at once: no JFIF, no Adobe marker, no tables; components 0, 1, 2 at full size.
  CHECK(tile[2] == 0xFF);
  CHECK(tile[3] == 0xC0);
  for (const int component : {0, 1, 2}) {
    CHECK(tile[12 + 3 * component] == component);
    CHECK(tile[13 + 3 * component] == 0x11);
  }
  // The second directory is the thumbnail, in strips.
  CHECK(TIFFSetDirectory(tiff.get(), 1) == 1);
  CHECK(TIFFIsTiled(tiff.get()) == 0);
  CHECK(TIFFNumberOfDirectories(tiff.get()) == 5);
}

}  // namespace
}  // namespace slidestream
