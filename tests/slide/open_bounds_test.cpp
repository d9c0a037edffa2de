// Opening a slide is bounded over all its directories, and can be given up. tests/cli/hostile_test.py has files from
// outside.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/decode_memory.hpp"
#include "slide/level_pictures.hpp"
#include "slide/likeness/large_tiles.hpp"
#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

TestDirectory level_of(std::uint32_t side) {
  TestDirectory directory = tiled_directory(side, side, 64, 64, 1);
  const std::size_t tiles = ((side + 63) / 64) * std::size_t{(side + 63) / 64};
  directory.tiles.assign(tiles, Bytes());  // white
  return directory;
}

TestDirectory with_unknown_tags(std::uint16_t count) {
  TestDirectory directory = level_of(64);
  for (std::uint16_t tag = 0; tag < count; ++tag) directory.set_short(static_cast<std::uint16_t>(40000 + tag), 1);
  return directory;
}

std::string error_of(const TestTiff& tiff, const OpenOptions& options = {}) {
  const TemporaryFolder folder;
  return open_error(folder.write("slide.tif", tiff.bytes()), options);
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Opening {
  std::size_t properties = 0;
  double seconds = 0.0;  ///< of a processor
};

Opening open_described(const std::string& description) {
  TestTiff tiff;
  tiff.directories = {level_of(64)};
  tiff.directories[0].set_text(270, description);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("slide.tif", tiff.bytes());
  const double begin = processor_seconds();
  const std::size_t properties = Slide::open(path)->info().properties.size();
  return {properties, processor_seconds() - begin};
}

}  // namespace

TEST_CASE("directories, their entries and levels are counted over the whole file") {
  TestTiff tiff;
  tiff.directories.assign(4097, stripped_directory(1, 1, 1, 1));
  // The first is larger: images of one size are channels.
  tiff.directories.front() = stripped_directory(2, 2, 2, 1);
  for (TestDirectory& directory : tiff.directories) directory.tiles = {Bytes()};
  CHECK(contains(error_of(tiff), "has more than 4096 directories"));
  tiff.directories.pop_back();
  CHECK(error_of(tiff).empty());

  tiff.directories.assign(1, with_unknown_tags(1020));
  CHECK(contains(error_of(tiff), " entries, supported are 1 to 1024"));
  tiff.directories.assign(140, with_unknown_tags(1000));
  CHECK(contains(error_of(tiff), "its directories have more than 131072 entries together"));

  tiff.directories = {level_of(20000)};
  std::vector<TestDirectory>& subs = tiff.directories[0].subs;
  for (std::uint32_t number = 1; number < 65; ++number) subs.push_back(level_of(20000 / (number + 1)));
  CHECK(contains(error_of(tiff), "has more than 64 levels"));
  subs.pop_back();
  CHECK(error_of(tiff).empty());
}

TEST_CASE("tiles are counted over all levels") {
  TestTiff tiff;
  tiff.directories = {level_of(640), level_of(320)};
  OpenOptions options;
  options.max_tiles = 125;
  CHECK(error_of(tiff, options).empty());
  options.max_tiles = 124;
  CHECK(contains(error_of(tiff, options), "its levels have 125 tiles or more, which is above input.max_tiles 124"));
}

TEST_CASE("of a description 4 MiB are read") {
  TestTiff tiff;
  tiff.directories = {level_of(64)};
  tiff.directories[0].set_text(270, std::string(std::size_t{5} << 20, 'x'));
  const TemporaryFolder folder;
  const auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()));
  CHECK(slide->info().properties.at("description").size() == std::size_t{4} << 20);
}

TEST_CASE("the tree of a description that is XML counts as memory for opening") {
  for (const char* begin : {"<OME>", "<image>openslide."}) {
    TestTiff tiff;
    tiff.directories = {level_of(64)};
    const std::string text = begin + std::string(std::size_t{1} << 20, 'x');
    tiff.directories[0].set_text(270, text);
    const TemporaryFolder folder;
    const auto slide = Slide::open(folder.write("slide.tif", tiff.bytes()));
    CHECK(opening_bytes(*slide) >= 20 * text.size());
  }
}

TEST_CASE("descriptions give a thousand properties at most, in linear time") {
  struct Kind {
    std::string begin;
    std::function<std::string(int)> entry;
    std::string end;
    std::size_t size, least, most;  ///< bytes, and properties of so many
  };
  const std::vector<Kind> kinds = {
      {"Aperio\n", [](int i) { return "|" + std::to_string(i) + "=1"; }, "", 7U << 19, 0, 1000},
      {"<OME >", [](int) { return "<M K=\"\">"; }, "</M>", 4U << 20, 0, 0},
      {"<OME >", [](int i) { return "<M K=\"" + std::to_string(i) + "\">"; }, "</M>", 4U << 20, 0, 0},
      {"<OME >", [](int i) { return "<M K=\"" + std::to_string(i) + "\">a</M>"; }, "</OME>", 3U << 20, 1000, 1000}};
  for (const Kind& kind : kinds) {
    INFO(kind.entry(0));
    const auto text_of = [&kind](std::size_t size) {
      std::string text = kind.begin;
      for (int i = 0; text.size() < size; ++i) text += kind.entry(i);
      return text + kind.end;
    };
    const Opening quarter = open_described(text_of(kind.size / 4));
    const Opening whole = open_described(text_of(kind.size));
    CHECK(whole.properties >= kind.least);
    CHECK(whole.properties <= kind.most);
    // Four times the text takes four times as long, whatever the machine, and not sixteen times.
    CHECK(whole.seconds < 8 * quarter.seconds + 1);
  }
}

TEST_CASE("opening ends when the caller gives it up") {
  TestTiff tiff;
  tiff.directories.assign(50, level_of(64));
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("slide.tif", tiff.bytes());
  OpenOptions options;
  int asked = 0;
  options.give_up = [&asked] { return ++asked == 20; };
  std::string text;
  try {
    Slide::open(path, options);
  } catch (const StoppedError& error) {
    text = error.what();
  }
  CHECK(text == path.string() + ": was being opened when the run gave it up");
  CHECK(asked == 20);
}

TEST_CASE("a large tile is decoded once for all places that are compared") {
  const Picture picture = make_stained_picture(1088, 1088, 5);
  const auto encode = [](const Picture& of) { return encode_jpeg2000(of, {.irreversible = false}); };
  TestTiff tiff;
  tiff.directories = {as_level(picture, encode, 1088), as_level(reduced(picture, 4), encode, 64)};
  for (TestDirectory& directory : tiff.directories) directory.set_short(259, 33005).set_short(262, 2);
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("slide.tif", tiff.bytes());
  const double begin = processor_seconds();
  const auto slide = Slide::open(path);
  const double opened = processor_seconds();
  CHECK(slide->info().levels.size() == 2);
  CHECK(slide->info().warnings.empty());
  const std::vector<std::uint8_t> grey = read_level(*slide, 0);
  const std::vector<std::uint8_t> rgb = read_level_rgb(*slide, 0);
  const double read = processor_seconds() - opened;
  // Luminance and RGB once each, and what is compared. Six places would take both six times.
  CHECK(opened - begin < 3 * read);
  CHECK(opening_bytes(*slide) > 4 * 1088 * 1088);
  // The same pixels, whatever place is read first.
  LargeTiles tiles;
  for (const auto& [x, y, width, height] : {std::array{1000, 7, 88, 3}, {0, 1080, 1088, 8}, {0, 0, 1, 1}}) {
    std::vector<std::uint8_t> part(static_cast<std::size_t>(3 * width * height));
    tiles.read(*slide, 0, x, y, {part.data(), width, width, height}, BadTilePolicy::fail);
    for (int row = 0; row < height; ++row) {
      CHECK(std::equal(part.begin() + row * width, part.begin() + (row + 1) * width,
                       grey.begin() + (y + row) * 1088 + x));
    }
    tiles.read(*slide, 0, x, y, {part.data(), 3 * width, width, height, rgb_format}, BadTilePolicy::fail);
    for (int row = 0; row < height; ++row) {
      CHECK(std::equal(part.begin() + 3 * row * width, part.begin() + 3 * (row + 1) * width,
                       rgb.begin() + 3 * ((y + row) * 1088 + x)));
    }
  }
  CHECK(tiles.decoded() == 2);
  CHECK_FALSE(LargeTiles::keeps(slide->info().levels[1]));
}
