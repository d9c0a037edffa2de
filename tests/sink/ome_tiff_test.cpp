#include <doctest/doctest.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <slidestream/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "image/pyramid_builder.hpp"
#include "sink/image_sink.hpp"
#include "sink/ome_xml.hpp"
#include "sink/partial_file.hpp"
#include "support/plain_pyramid.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream {
namespace {

using test::TemporaryFolder;
using test::WholeImage;

struct Tile {
  int level;
  TileIndex index;
  std::vector<std::byte> bytes;
};

std::string content(const std::filesystem::path& file) {
  // At once: a byte after the other takes most of the time where nothing is optimised.
  std::string bytes(std::filesystem::file_size(file), '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(in);
  return bytes;
}

ImageDescription description_of(const WholeImage& image) {
  ImageDescription description;
  description.name = "test";
  description.size = image.size;
  description.format = image.format;
  return description;
}

std::vector<Tile> encoded(const WholeImage& image, const ImageOptions& options) {
  PyramidBuilder builder(PyramidLayout(image.size, options.tile, options.levels), image.format, false);
  const auto encoder = make_tile_encoder(options.compression, image.format, options.quality, options.tile);
  std::vector<Tile> tiles;
  for (const PyramidTile& job : builder.add(image.rows(0, image.size.height), nullptr)) {
    tiles.push_back({job.level, job.index, encoder->encode(job.pixels)});
  }
  return tiles;
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("tiles that come in any order from several threads make the same file") {
  const TemporaryFolder folder;
  std::mt19937 random(4);
  const WholeImage image = test::noise_image({700, 500}, rgb_format, random);
  for (const TileCompression compression : {TileCompression::none, TileCompression::jpeg, TileCompression::zstd}) {
    const ImageOptions options{.compression = compression, .tile = 48};
    std::vector<Tile> tiles = encoded(image, options);
    std::string expected;
    for (int round = 0; round < 6; ++round) {
      const auto file = folder / "a.ome.tif";
      const auto sink = make_ome_tiff_sink(file, description_of(image), options);
      CHECK(std::filesystem::exists(folder / "a.partial.ome.tif"));
      if (round > 0) std::shuffle(tiles.begin(), tiles.end(), random);
      std::atomic<std::size_t> next{0};
      std::atomic<int> drains{0};
      {
        std::vector<std::jthread> threads;
        for (int i = 0; i < (round < 2 ? 1 : 4); ++i) {
          threads.emplace_back([&] {
            for (std::size_t at = next++; at < tiles.size(); at = next++) {
              const Tile& tile = tiles[at];
              if (!sink->put(tile.level, tile.index, EncodedTile(tile.bytes))) continue;
              if (++drains != 1) std::abort();
              --drains;
              sink->drain();
            }
          });
        }
      }
      CHECK(sink->written() == sink->layout().tiles());
      const std::vector<PublishedFile> made = sink->publish();
      REQUIRE(made.size() == 1);
      CHECK(made.front().bytes == std::filesystem::file_size(file));
      CHECK(!std::filesystem::exists(folder / "a.partial.ome.tif"));
      if (round == 0) expected = content(file);
      CHECK(content(file) == expected);
    }
  }
}

TEST_CASE("put waits for nobody, and drain has one caller") {
  const TemporaryFolder folder;
  std::mt19937 random(4);
  const WholeImage image = test::noise_image({64, 32}, luminance_format, random);
  const ImageOptions options{.tile = 16};
  std::vector<Tile> tiles = encoded(image, options);
  REQUIRE(tiles.size() == 11);  // 4 x 2, 2 x 1, 1 x 1
  const auto sink = make_ome_tiff_sink(folder / "a.ome.tif", description_of(image), options);
  const auto put = [&](std::size_t i) {
    auto owner = std::make_shared<std::vector<std::byte>>(tiles[i].bytes);
    const bool mine = sink->put(tiles[i].level, tiles[i].index, {*owner, owner});
    return std::pair(mine, std::weak_ptr(owner));
  };
  CHECK(!put(1).first);  // not its turn
  const auto [mine, first] = put(0);
  CHECK(mine);
  CHECK(!put(2).first);  // somebody drains already
  CHECK(sink->written() == 0);
  CHECK(!first.expired());
  sink->drain();
  CHECK(sink->written() == 3);
  CHECK(first.expired());
  CHECK(message_of([&] { sink->publish(); }).ends_with("a.ome.tif: 3 of 11 tiles were written"));
  CHECK(message_of([&] { put(0); }).ends_with("tile (0, 0) of level 0 was there before"));
  put(5);
  CHECK(message_of([&] { put(5); }).ends_with("was there before"));
  CHECK(message_of([&] { (void)sink->put(0, {4, 0}, {}); }).ends_with("level 0 has no tile (4, 0)"));
  CHECK(message_of([&] { (void)sink->put(3, {0, 0}, {}); }).ends_with("level 3 has no tile (0, 0)"));
  for (std::size_t i = 3; i < tiles.size(); ++i) {
    if (i != 5 && put(i).first) sink->drain();
  }
  sink->publish();
}

TEST_CASE("the placeholder with a tile's length is still the placeholder") {
  const TemporaryFolder folder;
  std::mt19937 random(9);
  for (const PixelFormat format : {rgb_format, PixelFormat{SampleType::uint16, 1}}) {
    // Noise and flat tiles: of many lengths, and as short as the placeholder.
    WholeImage image = test::noise_image({320, 480}, format, random);
    for (std::size_t i = 0; i < image.bytes.size() / 2; i += 1 + random() % 50) image.bytes[i] = std::byte{7};
    std::fill(image.bytes.begin() + static_cast<std::ptrdiff_t>(image.bytes.size() / 2), image.bytes.end(),
              std::byte{5});
    const ImageOptions options{.compression = TileCompression::zstd, .tile = 32};
    const auto sink = make_ome_tiff_sink(folder / "a.ome.tif", description_of(image), options);
    const std::string head = content(folder / "a.partial.ome.tif");
    const WholeImage white = [&] {
      WholeImage tile({32, 32}, format);
      std::fill(tile.bytes.begin(), tile.bytes.end(), std::byte{0xFF});
      return tile;
    }();
    const auto blank = make_tile_encoder(options.compression, format, 0, 32)->encode(white.rows(0, 32));
    const std::size_t place = head.find(std::string(reinterpret_cast<const char*>(blank.data()), blank.size()));
    REQUIRE(place != std::string::npos);
    for (Tile& tile : encoded(image, options)) {
      // Where a tile ends is where the file does.
      const auto before = std::filesystem::file_size(folder / "a.partial.ome.tif");
      if (sink->put(tile.level, tile.index, EncodedTile(tile.bytes))) sink->drain();
      const auto length = std::filesystem::file_size(folder / "a.partial.ome.tif") - before;
      REQUIRE(length >= blank.size());
      REQUIRE(place + length <= head.size());
      std::vector<std::byte> found(white.bytes.size());
      REQUIRE(ZSTD_decompress(found.data(), found.size(), head.data() + place, length) == white.bytes.size());
      REQUIRE(found == white.bytes);
      // And the tile itself, with what fills it up.
      const std::string file = content(folder / "a.partial.ome.tif");
      REQUIRE(ZSTD_decompress(found.data(), found.size(), file.data() + before, length) == white.bytes.size());
    }
  }
}

TEST_CASE("what can't be written is refused in one line") {
  const TemporaryFolder folder;
  const auto refusal = [&](const auto& change) {
    ImageDescription description;
    description.size = {100, 100};
    description.format = rgb_format;
    ImageOptions options;
    change(description, options);
    const std::string message = message_of([&] { make_ome_tiff_sink(folder / "a.ome.tif", description, options); });
    CHECK(std::filesystem::is_empty(folder.path()));
    return message;
  };
  CHECK(refusal([](auto&, auto& o) { o.tile = 100; }) == "image: tile must be a multiple of 16, not 100");
  CHECK(refusal([](auto&, auto& o) { o.tile = 8; }) == "image: tile must be from 16 to 4096, not 8");
  CHECK(refusal([](auto&, auto& o) { o.quality = 101; }) == "image: quality must be from 1 to 100, not 101");
  CHECK(refusal([](auto& d, auto&) { d.size.width = 0; }) == "image: width must be from 1 to 4294967295, not 0");
  CHECK(refusal([](auto& d, auto&) {
          d.size = {4294967295, 4294967295};
        }).find("tile must be larger") != std::string::npos);
  CHECK(refusal([](auto& d, auto&) { d.mpp = std::numeric_limits<double>::quiet_NaN(); }) ==
        "image: mpp must be a positive number, not nan");
  CHECK(refusal([](auto& d, auto& o) {
          d.format.channels = 4;
          o.compression = TileCompression::jpeg;
        }) == "image: compression must be none or zstd for anything but 1 or 3 channels of 8 bits, not jpeg");
}

TEST_CASE("storage that fails gives the path and the system's reason") {
  const TemporaryFolder folder;
  ImageDescription description;
  description.size = {10, 10};
  description.format = rgb_format;
  const auto message = [&](const std::filesystem::path& file) {
    return message_of([&] { make_ome_tiff_sink(file, description, {}); });
  };
  CHECK(message(folder / "none/a.ome.tif") ==
        (folder / "none/a.partial.ome.tif").string() + ": No such file or directory");
  std::filesystem::create_directory(folder / "b.ome.tif");
  CHECK(message(folder / "b.ome.tif") == (folder / "b.ome.tif").string() + ": it isn't a regular file");
  std::filesystem::create_directory_symlink("b.ome.tif", folder / "c.ome.tif");
  CHECK(message(folder / "c.ome.tif").empty());
}

TEST_CASE("partial names") {
  CHECK(partial_name("images/a.sobel.ome.tif") == "images/a.sobel.partial.ome.tif");
  CHECK(partial_name("a.ome.tif") == "a.partial.ome.tif");
  CHECK(partial_name("a.b.tif") == "a.b.partial.tif");
  CHECK(partial_name("/x/a") == "/x/a.partial");
}

TEST_CASE("any bytes as a name give well-formed UTF-8") {
  ImageDescription description;
  description.size = {1, 1};
  const auto name_of = [&](const std::string& name) {
    description.name = name;
    const std::string xml = ome_xml(description);
    const std::size_t at = xml.find("Name=\"") + 6;
    return xml.substr(at, xml.find('"', at) - at);
  };
  const std::string unknown = "\xEF\xBF\xBD";
  CHECK(name_of("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;'");
  CHECK(name_of("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x94\xAC") == "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x94\xAC");
  CHECK(name_of("a\tb\n") == "a b ");
  CHECK(name_of("\x01\xFF") == unknown + unknown);
  CHECK(name_of("\xC3") == unknown);                // cut off
  CHECK(name_of("\xC0\x80") == unknown + unknown);  // too long a form
  CHECK(name_of("\xED\xA0\x80") == unknown);        // a surrogate
  CHECK(name_of("\xEF\xBF\xBF") == unknown);        // no character
  CHECK(name_of("\xF7\xBF\xBF\xBF") == unknown);    // beyond the last
}

}  // namespace
}  // namespace slidestream
