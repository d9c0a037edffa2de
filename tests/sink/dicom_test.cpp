#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "sink/dicom_head.hpp"
#include "sink/dicom_item.hpp"
#include "sink/dicom_uid.hpp"
#include "sink/file_calls.hpp"
#include "sink/image_formats.hpp"
#include "sink/image_sink.hpp"
#include "sink/srgb_profile.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream {
namespace {

ImageDescription description_of(Size size) {
  ImageDescription description;
  description.size = size;
  description.format = rgb_format;
  description.mpp = 0.25;
  return description;
}

ImageOptions options_of(int tile) {
  ImageOptions options;
  options.format = ImageFormat::dicom;
  options.compression = TileCompression::jpeg;
  options.tile = tile;
  return options;
}

/// A sink with one tile in all places.
void fill(ImageSink& sink, int tile) {
  const std::vector<std::byte> pixels(static_cast<std::size_t>(3 * tile * tile), std::byte{200});
  const Size side{tile, tile};
  const auto encoder = sink.make_encoder();
  const std::vector<std::byte> bytes = encoder->encode({pixels.data(), 3 * tile, {0, 0, tile, tile}, side, rgb_format});
  const PyramidLayout& layout = sink.layout();
  for (int level = 0; level < layout.levels(); ++level) {
    for (std::int64_t row = 0; row < layout.rows(level); ++row) {
      for (std::int64_t column = 0; column < layout.columns(level); ++column) {
        if (sink.put(level, {column, row}, EncodedTile(std::vector<std::byte>(bytes)))) sink.drain();
      }
    }
  }
}

std::string text_of(const std::filesystem::path& file, std::size_t most) {
  std::string text(most, '\0');
  const OpenFile open(file);
  REQUIRE(open.descriptor >= 0);
  REQUIRE(read_at(open.descriptor, 0, std::as_writable_bytes(std::span(text))) == 0);
  return text;
}

}  // namespace

TEST_CASE("levels that may reach beyond 4 GiB have an extended offset table, others a basic one") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.dicom";
  constexpr int tile = 1024;
  // 720 tiles of 3 MiB: twice as many bytes are more than 2^32.
  const auto sink = make_dicom_sink(file, description_of({30 * tile, 24 * tile}), options_of(tile));
  fill(*sink, tile);
  const auto published = sink->publish();
  REQUIRE(published.size() == 1);
  CHECK(published[0].path == file);
  const std::string table("\xE0\x7F\x01\x00OV", 6);
  CHECK(text_of(file / "level-0.dcm", 16384).find(table) != std::string::npos);
  CHECK(text_of(file / "level-1.dcm", 8192).find(table) == std::string::npos);
  const auto opened = Slide::open(file / "level-0.dcm");
  const Slide& slide = *opened;
  REQUIRE(slide.info().levels.size() == static_cast<std::size_t>(sink->layout().levels()));
  for (std::size_t level = 0; level < slide.info().levels.size(); ++level) {
    const Level& seen = slide.info().levels[level];
    CHECK(seen.columns * seen.rows == sink->layout().tiles(static_cast<int>(level)));
    std::vector<std::byte> first;
    for (std::int64_t i = 0; i < seen.columns * seen.rows; ++i) {
      const TileRange range = slide.tile(level, i);
      std::vector<std::byte> bytes(range.length);
      slide.read(range.offset, bytes);
      if (i == 0) first = bytes;
      CHECK(bytes == first);
    }
    CHECK(first.size() > 1000);
  }
}

TEST_CASE("JPEG of YCbCr is called YBR_FULL_422, however its colours are sampled") {
  const test::TemporaryFolder folder;
  const std::string called("\x28\0\x04\0CS\x0C\0YBR_FULL_422", 20);
  int round = 0;
  for (const ChromaSubsampling subsampling :
       {ChromaSubsampling::s420, ChromaSubsampling::s422, ChromaSubsampling::s444}) {
    CAPTURE(round);
    const std::filesystem::path file = folder.path() / (std::to_string(round++) + ".dicom");
    ImageOptions options = options_of(128);
    options.subsampling = subsampling;
    const auto sink = make_dicom_sink(file, description_of({300, 300}), options);
    fill(*sink, 128);
    sink->publish();
    std::ifstream stream(file / "level-0.dcm", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    CHECK(bytes.find(called) != std::string::npos);
  }
}

TEST_CASE("uncompressed images of 4 GiB, and those without a pixel size, are refused") {
  const test::TemporaryFolder folder;
  ImageOptions options = options_of(256);
  options.compression = TileCompression::none;
  CHECK_THROWS_WITH_AS(make_dicom_sink(folder.path() / "a.dicom", description_of({40000, 40000}), options),
                       doctest::Contains("uncompressed DICOM holds less than 4 GiB"), Error);
  ImageDescription unknown = description_of({300, 300});
  unknown.mpp.reset();
  CHECK_THROWS_WITH_AS(make_dicom_sink(folder.path() / "a.dicom", unknown, options),
                       doctest::Contains("the size of a pixel"), Error);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("instances have no name before all are whole, and what is left is replaced") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "a.dicom";
  const std::filesystem::path partial = folder.path() / "a.partial.dicom";
  for (int round = 0; round < 2; ++round) {
    const auto sink = make_dicom_sink(file, description_of({300, 300}), options_of(128));
    REQUIRE(std::filesystem::exists(partial));
    for (const auto& entry : std::filesystem::directory_iterator(partial)) {
      CHECK(entry.path().filename().string().starts_with("."));
    }
    if (round == 0) continue;
    fill(*sink, 128);
    sink->publish();
  }
  CHECK(!std::filesystem::exists(partial));
  CHECK(std::filesystem::exists(file / "level-2.dcm"));
  CHECK(!std::filesystem::exists(file / "level-3.dcm"));
}

TEST_CASE("nothing is left of an image that isn't finished, also with tiles in it") {
  const test::TemporaryFolder folder;
  {
    const auto sink = make_dicom_sink(folder.path() / "a.dicom", description_of({300, 300}), options_of(128));
    fill(*sink, 128);
    CHECK(sink->written() > 0);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("UIDs of a root have one length, and tell content and role") {
  DicomHash one;
  one.add(std::as_bytes(std::span("one", 3)));
  DicomHash other;
  other.add(std::as_bytes(std::span("oth", 3)));
  for (const std::string root : {"", "1.2.3", "1.2.826.0.1.3680043.8.498.123456789012"}) {
    std::set<std::string> seen;
    std::set<std::size_t> lengths;
    for (const DicomHash& content : {one, other}) {
      for (int role = 0; role < 200; ++role) {
        const std::string uid = dicom_uid(root, content, std::to_string(role));
        CHECK(uid.starts_with((root.empty() ? "2.25" : root) + "."));
        CHECK(uid.size() <= 64);
        CHECK(uid[uid.rfind('.') + 1] != '0');
        seen.insert(uid);
        lengths.insert(uid.size());
      }
    }
    CHECK(seen.size() == 400);
    CHECK(lengths.size() == 1);
  }
}

TEST_CASE("numbers have at most 16 characters") {
  CHECK(decimal_text(0.00025) == "0.00025");
  CHECK(decimal_text(1.0) == "1");
  for (const double value : {1.0 / 3.0, -1.0 / 3e9, 123456789.123456789, -2.0 / 3e-200, 0.000126315789}) {
    CHECK(decimal_text(value).size() <= 16);
    CHECK(std::stod(decimal_text(value)) == doctest::Approx(value).epsilon(1e-8));
  }
}

TEST_CASE("the profile of sRGB says its own size") {
  const auto profile = srgb_profile();
  REQUIRE(profile.size() > 128);
  std::size_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size = size << 8 | std::to_integer<std::size_t>(profile[i]);
  CHECK(size == profile.size());
}

}  // namespace slidestream
