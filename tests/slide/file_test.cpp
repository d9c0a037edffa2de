#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "slide/file.hpp"
#include "slide/test_images.hpp"
#include "support/test_data.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

/// The message begins with the path, which doesn't come again, and holds `cause` in one line.
void check_error(const std::string& error, const std::filesystem::path& path, const std::string& cause) {
  CAPTURE(error);
  CHECK(error.starts_with(path.string() + ": "));
  CHECK(error.find(cause) != std::string::npos);
  CHECK(error.find('\n') == std::string::npos);
  CHECK(error.find(path.filename().string(), path.string().size()) == std::string::npos);
}

Bytes text_bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(first, first + text.size());
}

TestTiff small_slide() {
  TestTiff tiff;
  tiff.directories.push_back(tiled_directory(32, 16, 16, 16, 1));
  const Picture picture = make_picture(32, 16, 1, 1);
  tiff.directories[0].tiles = {to_bytes(cut(picture, 0, 0, 16, 16)), to_bytes(cut(picture, 16, 0, 16, 16))};
  return tiff;
}

}  // namespace

TEST_CASE("what isn't a slide fails with one line") {
  const TemporaryFolder folder;
  SUBCASE("text") {
    const auto path = folder.write("text.svs", text_bytes("II is how this text begins, and it isn't a TIFF"));
    check_error(open_error(path), path, "no TIFF header");
  }
  SUBCASE("a volume") {
    for (const char* name : {"scan.nii", "SCAN.NII.GZ"}) {
      const auto path = folder.write(name, text_bytes("what it holds doesn't matter"));
      check_error(open_error(path), path, "named as a volume (NIfTI), which `pipeline volume` takes");
    }
  }
  SUBCASE("empty") {
    const auto path = folder.write("empty.svs", {});
    check_error(open_error(path), path, "is empty");
  }
  SUBCASE("a folder") {
    const auto path = folder.path() / "folder.svs";
    std::filesystem::create_directory(path);
    check_error(open_error(path), path, "is a folder");
  }
  SUBCASE("missing") {
    const auto path = folder.path() / "missing.svs";
    check_error(open_error(path), path, "No such file");
  }
  SUBCASE("a FIFO without a writer doesn't hang") {
    const auto path = folder.path() / "fifo.svs";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    check_error(open_error(path), path, "is a FIFO");
  }
  SUBCASE("a device") { check_error(open_error("/dev/null"), "/dev/null", "is a device"); }
  SUBCASE("header only") {
    const auto path = folder.write("header.svs", text_bytes(std::string("II*\0\x08\0\0\0", 8)));
    check_error(open_error(path), path, "outside the file");
  }
  SUBCASE("a line break in the name stays, for the path is as given; the cause is one line") {
    const auto path = folder.write("two\nlines.svs", {});
    CHECK(open_error(path) == path.string() + ": is empty, expected a TIFF or BigTIFF file");
    CHECK_THROWS_WITH_AS(throw_slide_error(path, "a\nb\x1b"), (path.string() + ": a?b?").c_str(), SlideError);
  }
}

TEST_CASE("no permission") {
  if (::geteuid() == 0) {
    report_skipped("root may read every file");
    return;
  }
  const TemporaryFolder folder;
  const auto path = folder.write("secret.svs", small_slide().bytes());
  REQUIRE(::chmod(path.c_str(), 0) == 0);
  check_error(open_error(path), path, "Permission denied");
}

TEST_CASE("a file that shrinks while it is open gives an error") {
  const TemporaryFolder folder;
  const auto path = folder.write("shrinks.tif", small_slide().bytes());
  const auto slide = Slide::open(path);
  CHECK(read_level(*slide).size() == 32 * 16);
  std::filesystem::resize_file(path, slide->tile(0, 1).offset + 10);
  try {
    read_level(*slide);
    FAIL("read beyond the end");
  } catch (const SlideError& error) {
    check_error(error.what(), path, "ends too early");
  }
  CHECK(slide->contains(slide->tile(0, 1)));  // as at opening
}

TEST_CASE("reads are positional and exact") {
  const TemporaryFolder folder;
  const Bytes bytes = small_slide().bytes();
  const auto slide = Slide::open(folder.write("slide.tif", bytes));
  CHECK(slide->info().file_size == bytes.size());
  Bytes part(20);
  slide->read(5, part);
  CHECK(std::equal(part.begin(), part.end(), bytes.begin() + 5));
  CHECK_THROWS_AS(slide->read(bytes.size() - 10, part), SlideError);
  CHECK_THROWS_AS(slide->read(~std::uint64_t{0} - 3, part), SlideError);
}

TEST_CASE("a tile that is asked for in parts is the same as in one") {
  const TemporaryFolder folder;
  const auto slide = Slide::open(folder.write("slide.tif", small_slide().bytes()));
  const std::vector<std::uint8_t> whole = read_level(*slide);
  for (int x = 0; x < 32; x += 5) {
    for (int y = 0; y < 16; y += 3) {
      const int width = std::min(7, 32 - x), height = std::min(4, 16 - y);
      std::vector<std::uint8_t> part(7 * 4);
      read_luminance(*slide, 0, x, y, {part.data(), 7, width, height});
      for (int row = 0; row < height; ++row) {
        for (int column = 0; column < width; ++column) {
          CHECK(part[row * 7 + column] == whole[(y + row) * 32 + x + column]);
        }
      }
    }
  }
  std::vector<std::uint8_t> pixel(1);
  CHECK_THROWS_AS(read_luminance(*slide, 0, 32, 0, {pixel.data(), 1, 1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(read_luminance(*slide, 0, -1, 0, {pixel.data(), 1, 1, 1}), std::invalid_argument);
}

TEST_CASE("a missing tile is white, a tile outside the file is bad") {
  const TemporaryFolder folder;
  TestTiff tiff = small_slide();
  TestDirectory& directory = tiff.directories[0];
  SUBCASE("byte count 0") {
    directory.tiles[1].clear();
    const auto slide = Slide::open(folder.write("missing.tif", tiff.bytes()));
    CHECK(slide->tile(0, 1).length == 0);
    CHECK(slide->contains(slide->tile(0, 1)));
    const std::vector<std::uint8_t> pixels = read_level(*slide);
    for (int y = 0; y < 16; ++y) CHECK(pixels[y * 32 + 16 + y] == 255);
    CHECK(pixels[0] == std::to_integer<int>(directory.tiles[0][0]));
  }
  SUBCASE("byte count 0 of the only tile, which libtiff would estimate") {
    tiff.directories[0] = stripped_directory(20, 10, 10, 1);
    tiff.directories[0].tiles = {Bytes(200)};
    tiff.directories[0].set(279, long_, {0});
    const auto slide = Slide::open(folder.write("strip.tif", tiff.bytes()));
    CHECK(slide->tile(0, 0).length == 0);
    CHECK(read_level(*slide) == std::vector<std::uint8_t>(200, 255));
  }
  SUBCASE("offset 0 with a length") {
    directory.set(324, long_, {0, 8});
    const auto path = folder.write("zero.tif", tiff.bytes());
    CHECK_FALSE(Slide::open(path)->contains(Slide::open(path)->tile(0, 0)));
    check_error(read_error(path), path, "level 0 tile 0 (column 0, row 0): lies outside the file");
  }
  SUBCASE("beyond the end") {
    directory.set(324, long_, {8, 1000000});
    const auto path = folder.write("beyond.tif", tiff.bytes());
    CHECK_FALSE(Slide::open(path)->contains(Slide::open(path)->tile(0, 1)));
    check_error(read_error(path), path, "level 0 tile 1 (column 1, row 0): lies outside the file");
  }
  SUBCASE("a length that overflows") {
    tiff.big = true;
    directory.set(325, long8, {256, ~std::uint64_t{0} - 4});
    const auto path = folder.write("overflow.tif", tiff.bytes());
    check_error(read_error(path), path, "TileByteCounts of number 1 is 18446744073709551611");
    // Nothing says how long a compressed tile may be.
    directory.set(259, short_, {8});
    const auto deflate = Slide::open(folder.write("deflate.tif", tiff.bytes()));
    CHECK_FALSE(deflate->contains(deflate->tile(0, 1)));
  }
}
