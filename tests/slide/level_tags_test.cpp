#include <doctest/doctest.h>
#include <tiffio.h>

#include <slidestream/slide.hpp>

#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

TestTiff sound(int samples = 3) {
  TestTiff tiff;
  tiff.directories.push_back(tiled_directory(40, 24, 32, 16, samples));
  tiff.directories[0].tiles.assign(4, Bytes(static_cast<std::size_t>(32 * 16 * samples)));
  return tiff;
}

/// Opens the first directory after `change`, and checks that the error holds `cause`; "" means that it opens.
template <class Change>
void check(Change change, const std::string& cause, int samples = 3) {
  TestTiff tiff = sound(samples);
  change(tiff.directories[0]);
  const TemporaryFolder folder;
  const std::string error = open_error(folder.write("slide.tif", tiff.bytes()));
  CAPTURE(error);
  CAPTURE(cause);
  CHECK(error.empty() == cause.empty());
  CHECK(error.find(cause) != std::string::npos);
  CHECK(error.find('\n') == std::string::npos);
}

using Dir = TestDirectory&;

}  // namespace

TEST_CASE("what isn't supported is refused with the tag's name and value") {
  check([](Dir) {}, "");
  check([](Dir d) { d.set(258, short_, {16, 16, 16}); }, "BitsPerSample 16 isn't supported; supported: 8");
  check([](Dir d) { d.remove(258); }, "BitsPerSample 1 isn't supported");
  check([](Dir d) { d.set(339, short_, {2, 2, 2}); }, "SampleFormat 2");
  check([](Dir d) { d.set(339, short_, {3, 3, 3}); }, "SampleFormat 3");
  check([](Dir d) { d.set(339, short_, {4, 4, 4}); }, "");
  check([](Dir d) { d.set_short(284, 2); }, "TileOffsets has 4 values, expected 12 for 3 planes of 2 x 2 tiles");
  check([](Dir d) { d.set_short(284, 2).tiles.resize(12, Bytes(32 * 16)); }, "TileByteCounts of number 0 is 1536, but");
  check([](Dir d) { d.set_short(284, 2).tiles.assign(12, Bytes(32 * 16)); }, "");
  check([](Dir d) { d.set_short(284, 3); }, "PlanarConfiguration 3 isn't supported; supported: 1 contiguous, 2");
  check([](Dir d) { d.set_short(284, 2).set_short(262, 6).set_short(259, 7); },
        "PlanarConfiguration 2 isn't supported with YCbCr; supported: 1 contiguous");
  if (TIFFIsCODECConfigured(COMPRESSION_WEBP) == 1) {
    check([](Dir d) { d.set_short(284, 2).set_short(259, COMPRESSION_WEBP); },
          "PlanarConfiguration 2 isn't supported with webp; supported: 1 contiguous");
  }
  check([](Dir d) { d.set_short(266, 2); }, "FillOrder 2");
  check([](Dir d) { d.set_short(262, 3); }, "PhotometricInterpretation 3", 1);
  check([](Dir d) { d.set_short(262, 5); }, "PhotometricInterpretation 5", 4);
  check([](Dir d) { d.set_short(262, 8); }, "PhotometricInterpretation 8");
  check([](Dir d) { d.set_short(262, 6); }, "PhotometricInterpretation 6");
  check([](Dir d) { d.set_short(262, 6).set_short(259, 5); }, "PhotometricInterpretation 6");
  check([](Dir d) { d.remove(262); }, "PhotometricInterpretation is missing");
  check([](Dir d) { d.set_short(259, 6); }, "Compression 6");
  check([](Dir d) { d.set_short(259, 12345); }, "Compression 12345");
  check([](Dir d) { d.set_short(274, 6); },
        "Orientation 6 isn't supported; supported: 1, the first pixel at the upper");
  check([](Dir d) { d.set(258, short_, {8, 8, 16}); }, "BitsPerSample 16");
  check([](Dir d) { d.set(258, short_, {}); }, "BitsPerSample has no value that can be read");
  check([](Dir d) { d.set(339, short_, {1, 1, 2}); }, "SampleFormat 2");
  check([](Dir d) { d.set_short(284, 2); }, "", 1);  // of one sample both are the same
}

TEST_CASE("a predictor is refused where the codec has none, or no such one") {
  const auto predictor = [](std::uint64_t compression, std::uint64_t value) {
    return [=](Dir d) { d.set_short(259, compression).set_short(317, value); };
  };
  check(predictor(1, 1), "");
  check(predictor(1, 2), "Predictor 2 isn't supported with compression none; supported: 1 none");
  check(predictor(32773, 2), "Predictor 2 isn't supported with compression packbits; supported: 1 none");
  check(predictor(5, 2), "");
  check(predictor(8, 2), "");
  check(predictor(8, 3), "Predictor 3 isn't supported; supported: 1 none, 2 horizontal");
  check(predictor(5, 34892), "Predictor 34892 isn't supported");
}

TEST_CASE("samples and colour must agree") {
  check([](Dir d) { d.set_short(262, 2); }, "SamplesPerPixel 1", 1);
  check([](Dir d) { d.set_short(262, 2); }, "SamplesPerPixel 2", 2);
  check([](Dir) {}, "", 4);
  check([](Dir) {}, "SamplesPerPixel 5", 5);
  check([](Dir) {}, "", 2);
  check([](Dir d) { d.set_short(262, 1); }, "SamplesPerPixel 3 contradicts PhotometricInterpretation, which says grey");
  check([](Dir d) { d.set_short(262, 1); }, "SamplesPerPixel 4 contradicts PhotometricInterpretation", 4);
  check([](Dir d) { d.set_short(262, 0); }, "", 1);
}

TEST_CASE("samples that no colour has are channels, unless they are alpha") {
  const auto extra = [](std::vector<std::uint64_t> kinds) { return [kinds](Dir d) { d.set(338, short_, kinds); }; };
  for (const std::uint64_t alpha : {1, 2}) {
    check(extra({alpha}), "", 4);
    check(extra({alpha}), "", 2);
  }
  check(extra({0}), "has 2 channels; set input.channel to choose one, 0 to 1", 2);
  check(extra({0}), "has 4 channels, the first three of them RGB; set input.channel to choose one, 0 to 3", 4);
  check(
      [](Dir d) {
        d.set_short(262, 1).set(338, short_, {0, 0, 0});
      },
      "has 4 channels; set input.channel to choose one, 0 to 3", 4);
  check([](Dir d) { d.set_short(262, 1).set(338, short_, {1, 2, 1}); }, "SamplesPerPixel 4 isn't supported", 4);
}

TEST_CASE("sizes that are missing, zero or absurd") {
  check([](Dir d) { d.set(256, long_, {0}); }, "ImageWidth 0");
  check([](Dir d) { d.remove(256); }, "ImageWidth is missing");
  check([](Dir d) { d.set(257, long_, {0}); }, "ImageLength 0");
  check([](Dir d) { d.remove(257); }, "ImageLength is missing");
  check([](Dir d) { d.set(257, ascii, {65}); }, "ImageLength has no value that can be read");
  check([](Dir d) { d.set(256, long8, {std::uint64_t{1} << 40}); }, "ImageWidth");
  check([](Dir d) { d.set(322, long_, {0}); }, "TileWidth 0");
  check([](Dir d) { d.set(323, long_, {0}); }, "TileLength 0");
  check([](Dir d) { d.remove(323); }, "TileLength is missing");
  check([](Dir d) { d.set(322, long_, {1u << 20}).set(323, long_, {1u << 20}); }, "TileWidth x TileLength 1048576");
  check([](Dir d) { d.set(322, long_, {1u << 14}).set(323, long_, {1u << 14}).set_short(259, 33005); },
        "up to 2^26 pixels with JPEG 2000");
  check([](Dir d) { d.set(256, long_, {100000}).set(257, long_, {100000}).set(322, long_, {1}).set(323, long_, {1}); },
        "TileOffsets has 4 values, expected 10000000000");
  check([](Dir d) { d.set(278, long_, {0}).remove(322).remove(323); }, "RowsPerStrip 0");
}

TEST_CASE("tile arrays must have the count that the sizes ask for") {
  check([](Dir d) { d.set(256, long_, {70}); }, "TileOffsets has 4 values, expected 6 for 3 x 2 tiles");
  check([](Dir d) { d.set(325, long_, {512, 512, 512}); }, "TileByteCounts has 3 values, expected 4");
  check([](Dir d) { d.set(325, long_, {}); }, "TileByteCounts");
  check([](Dir d) { d.set(324, rational, {8, 8, 8, 8}); }, "TileOffsets has type 5");
  check([](Dir d) { d.tiles.clear(); }, "TileOffsets is missing");
  check([](Dir d) { d.set(325, short_, {1536, 1536, 1536, 1536}); }, "");
}

TEST_CASE("a tag that stands twice, or that has several values where one is meant") {
  const auto twice = [](std::uint16_t tag, std::uint16_t type, std::vector<std::uint64_t> numbers) {
    return [=](Dir d) { d.tags.push_back({tag, type, numbers, {}}); };
  };
  check(twice(262, short_, {1}), "PhotometricInterpretation stands twice");
  check(twice(256, long_, {64}), "ImageWidth stands twice");
  check(twice(258, short_, {8, 8, 8}), "BitsPerSample stands twice");
  check(
      [](Dir d) {
        d.set(325, long_, {1536, 1536, 1536, 1536});
        d.tags.push_back(d.tags.back());
      },
      "TileByteCounts stands twice");
  check(
      [](Dir d) {
        d.set_short(254, 0);
        d.tags.push_back({254, short_, {4}, {}});
      },
      "NewSubfileType stands twice");
  check(
      [](Dir d) {
        d.set_bytes(34675, Bytes(128));
        d.tags.push_back({34675, undefined, {}, Bytes(132)});
      },
      "ICCProfile stands twice");
  for (const auto& [tag, name] : {std::pair(529, "YCbCrCoefficients"), std::pair(532, "ReferenceBlackWhite")}) {
    const auto number = static_cast<std::uint16_t>(tag);
    check(
        [number](Dir d) {
          d.set(number, rational, {0, 1, 0});
          d.tags.push_back({number, rational, {1, 0, 0}, {}});
        },
        std::string(name) + " stands twice");
  }
  check(
      [](Dir d) {
        d.set(330, long_, {0});
        d.tags.push_back({330, long_, {8}, {}});
      },
      "SubIFDs stands twice");
  check(twice(65000, short_, {1}), "");
  check([](Dir d) { d.set(256, long_, {40, 40}); }, "ImageWidth has 2 values, expected 1");
  check([](Dir d) { d.set(262, short_, {2, 1}); }, "PhotometricInterpretation has 2 values, expected 1");
  check([](Dir d) { d.set(274, short_, {1, 1, 1}); }, "Orientation has 3 values, expected 1");
}

TEST_CASE("tiles without compression have the bytes that their sides ask for, and no more") {
  // As many tiles as before, whose rows are shorter than what was written.
  check([](Dir d) { d.set(322, long_, {31}); },
        "TileByteCounts of number 0 is 1536, but TileWidth x TileLength 31 x 16 with 3 samples a pixel takes 1488");
  check([](Dir d) { d.set(323, long_, {15}); }, "TileByteCounts of number 0 is 1536");
  check([](Dir d) { d.tiles[3].resize(32 * 16 * 3 + 1); }, "TileByteCounts of number 3 is 1537");
  const auto stripped = [](std::uint32_t rows, std::size_t bytes, std::size_t count) {
    return [=](Dir d) {
      d = stripped_directory(40, 24, rows, 3);
      d.tiles.assign(count, Bytes(bytes));
    };
  };
  // The last strip may be whole, and one strip is the whole image, whatever is behind it.
  check(stripped(16, 40 * 16 * 3, 2), "");
  check(stripped(15, 40 * 16 * 3, 2), "StripByteCounts of number 0 is 1920, but ImageWidth x RowsPerStrip 40 x 15");
  check(stripped(24, 40 * 24 * 3 + 99, 1), "");
}

TEST_CASE("sides of tiles that TIFF doesn't have get a line") {
  const auto warnings = [](std::uint32_t width, std::uint32_t height) {
    TestTiff tiff;
    tiff.directories.push_back(tiled_directory(40, 24, width, height, 1));
    tiff.directories[0].tiles.assign(4, Bytes(std::size_t{width} * height));
    const TemporaryFolder folder;
    return Slide::open(folder.write("slide.tif", tiff.bytes()))->info().warnings;
  };
  CHECK(warnings(32, 16).empty());
  for (const auto& [width, height] : {std::pair(31U, 16U), std::pair(32U, 15U)}) {
    CHECK(warnings(width, height) == std::vector{"TileWidth x TileLength " + std::to_string(width) + " x " +
                                                 std::to_string(height) + " aren't multiples of 16, as TIFF's are"});
  }
}

TEST_CASE("max_pixels is the limit of width x height") {
  const TemporaryFolder folder;
  const auto path = folder.write("slide.tif", sound().bytes());
  CHECK(open_error(path, {.max_pixels = 40 * 24}).empty());
  CHECK(open_error(path, {.max_pixels = 40 * 24 - 1}).find("40 x 24 is more than input.max_pixels 959") !=
        std::string::npos);
  check([](Dir d) { d.set(256, long_, {0xFFFFFFFF}).set(257, long_, {0xFFFFFFFF}); }, "more than input.max_pixels");
}
