// Pictures of slides and results that may come from anybody.

#include "report/pictures.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "report/deep_zoom_picture.hpp"
#include "report/own_file.hpp"
#include "report/picture.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_slides.hpp"

namespace slidestream::report {
namespace {

namespace fs = std::filesystem;

ColourImage grey_picture(int width, int height) {
  ColourImage image{width, height, {}};
  image.pixels.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3, 77);
  return image;
}

/// A Deep Zoom image of 1024 x 512 pixels with its two largest levels of one tile.
void write_deep_zoom(const test::TemporaryFolder& folder) {
  fs::create_directories(folder / "images/a_files/8");
  fs::create_directories(folder / "images/a_files/7");
  folder.write("images/a.dzi", std::string(R"(<?xml version="1.0"?><Image Format="jpg" Overlap="0" TileSize="256">)"
                                           R"(<Size Width="1024" Height="512"/></Image>)"));
  folder.write("images/a_files/8/0_0.jpg", jpeg_bytes(grey_picture(256, 128), 90));
  folder.write("images/a_files/7/0_0.jpg", jpeg_bytes(grey_picture(128, 64), 90));
}

std::string picture_of_a(const test::TemporaryFolder& folder, std::size_t most = 1 << 20) {
  return deep_zoom_picture(folder.path(), "images/a.dzi", 0, most);
}

Pictures pictures_of(const std::vector<PictureSource>& sources, const PictureLimits& limits = {}) {
  return make_pictures(sources, 1 << 20, limits, [](const PictureSource&, WindowMap&) { return false; }, {});
}

PictureSource source_of(const std::string& path) {
  PictureSource source;
  source.canonical = path;
  source.path = path;
  return source;
}

TEST_CASE("a file of a results folder is a regular one of the size that was written") {
  const test::TemporaryFolder folder;
  const auto check = [&](const std::string& file, std::uint64_t bytes) { check_own_file(folder.path(), file, bytes); };
  fs::create_directories(folder / "elsewhere/deep");
  fs::create_directories(folder / "images/sub");
  folder.write("images/a", std::string("four"));
  folder.write("elsewhere/a", std::string("four"));
  folder.write("elsewhere/deep/a", std::string("four"));
  CHECK_NOTHROW(check("images/a", 4));
  CHECK_NOTHROW(check("images/a", 0));
  CHECK_NOTHROW(check((folder / "images/a").string(), 4));
  CHECK_THROWS_WITH_AS(check("images/a", 5), doctest::Contains("was changed since it was written"), SlideError);
  CHECK_THROWS_WITH_AS(check("images/none", 4), doctest::Contains("is missing"), SlideError);
  CHECK_THROWS_WITH_AS(check("images/sub", 0), doctest::Contains("isn't a regular file"), SlideError);
  CHECK_THROWS_WITH_AS(check("../a", 4), doctest::Contains("outside of the results folder"), SlideError);
  fs::create_symlink(folder / "elsewhere/a", folder / "images/link");
  CHECK_THROWS_WITH_AS(check("images/link", 4), doctest::Contains("is a link, which isn't followed"), SlideError);
  CHECK_THROWS_AS(check((folder / "images/link").string(), 4), SlideError);
  fs::create_directory_symlink(folder / "elsewhere/deep", folder / "images/deep");
  CHECK_THROWS_WITH_AS(check("images/deep/a", 4), doctest::Contains("behind the link deep"), SlideError);
  // Runs write through such a link, too.
  fs::create_directory_symlink(folder / "elsewhere", folder / "maps");
  CHECK_NOTHROW(check("maps/a", 4));
}

TEST_CASE("bytes are a JPEG image of the sides that are expected, or stand in no page") {
  const std::string good = jpeg_bytes(grey_picture(40, 30), 90);
  CHECK(fault_of_jpeg(good, 40, 30).empty());
  CHECK(fault_of_jpeg(good, 30, 40) == "has another size");
  CHECK(fault_of_jpeg(good, 400, 300) == "has another size");
  CHECK(fault_of_jpeg("root:x:0:0", 40, 30) == "isn't a JPEG image");
  CHECK(fault_of_jpeg("", 40, 30) == "isn't a JPEG image");
  CHECK(fault_of_jpeg(good.substr(0, 3) + std::string(500, 'x'), 40, 30) == "is damaged");
  CHECK(fault_of_jpeg(good.substr(0, good.size() - 20), 40, 30) == "is damaged");
}

TEST_CASE("a Deep Zoom image's picture is the largest level of one tile, whatever the run's settings say") {
  const test::TemporaryFolder folder;
  write_deep_zoom(folder);
  const std::string whole = picture_of_a(folder);
  CHECK(fault_of_jpeg(whole, 256, 128).empty());
  CHECK(fault_of_jpeg(picture_of_a(folder, whole.size() - 1), 128, 64).empty());
  // What is swapped for another image, another file or a link isn't shown.
  const fs::path tile = folder / "images/a_files/8/0_0.jpg";
  folder.write("images/a_files/8/0_0.jpg", jpeg_bytes(grey_picture(256, 256), 90));
  CHECK_THROWS_WITH_AS(picture_of_a(folder), doctest::Contains("its tile 8/0_0.jpg has another size"), SlideError);
  fs::remove(tile);
  const fs::path secret = folder.write("secret", jpeg_bytes(grey_picture(256, 128), 90));
  fs::create_symlink(secret, tile);
  CHECK_THROWS_WITH_AS(picture_of_a(folder), doctest::Contains("is a link, which isn't followed"), SlideError);
  fs::remove_all(tile.parent_path());
  fs::create_directories(folder / "other");
  fs::rename(secret, folder / "other/0_0.jpg");
  fs::create_directory_symlink(folder / "other", tile.parent_path());
  CHECK_THROWS_WITH_AS(picture_of_a(folder), doctest::Contains("behind the link 8"), SlideError);
  for (const char* text : {"", "<Image TileSize=\"0\"><Size Width=\"1\" Height=\"1\"/>", "<Image TileSize=\"256\">"}) {
    folder.write("images/a.dzi", std::string(text));
    CHECK_THROWS_WITH_AS(picture_of_a(folder), doctest::Contains("isn't the description"), SlideError);
  }
}

TEST_CASE("a slide that failed isn't opened, and the page is told why pictures are missing") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  PictureSource failed = source_of(slides[0]);
  failed.failed = true;
  PictureSource made = source_of(slides[0]);
  made.made.push_back({.file = 3, .folder = folder.path(), .name = "images/none.ome.tif"});
  const Pictures pictures = pictures_of({failed, made});
  CHECK(pictures.thumbnails_made == 1);
  CHECK(pictures.json["absent"][0] == "its run failed on it, so its file isn't opened here");
  CHECK(pictures.json["absent"][1].is_null());
  CHECK(pictures.json["lacking"][1] == nlohmann::ordered_json::parse(R"([[3, "is missing"]])"));
}

TEST_CASE("tiles that take more memory than a report has aren't decoded") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 2, test::Coding::lzw);
  PictureLimits limits;
  limits.threads = 2;
  limits.decode_bytes = 16;
  limits.row_bytes = 16;  // one thread at a time has rows
  const Pictures pictures = pictures_of({source_of(slides[0]), source_of(slides[1])}, limits);
  CHECK(pictures.thumbnails_made == 0);
  for (const auto& absent : pictures.json["absent"]) {
    const std::string text = absent;
    CHECK(text.find("to decode, and decoding may take") != std::string::npos);
    CHECK(text.find("pipeline.memory_mib") == std::string::npos);
  }
}

TEST_CASE("a picture's time is that of its run, and a stop ends all of them") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> slides = test::equal_slides(folder, 1);
  PictureLimits limits;
  limits.most_seconds = -1;  // over as it begins
  const Pictures late = pictures_of({source_of(slides[0])}, limits);
  CHECK(late.json["absent"][0] == "took longer than -1 s, which a report gives a picture");
  limits.most_seconds = 300;
  std::atomic<int> questions{0};
  limits.stopped = [&] { return ++questions > 2; };
  CHECK_THROWS_AS(pictures_of({source_of(slides[0])}, limits), StoppedError);
}

TEST_CASE("a slide is opened as its run opened it, but no library is loaded that a ledger names") {
  Config config;
  config.input.max_pixels = 1000;
  config.input.max_tiles = 77;
  config.input.channel = 3;
  config.image.copy_levels = CopyLevels::shrink_on_load;
  PictureSource source = source_of("slide.svs");
  source.config = &config;
  config.input.openslide = "never";
  const OpenOptions options = picture_options(source);
  CHECK(options.max_pixels == 1000);
  CHECK(options.max_tiles == 77);
  CHECK(options.channel == 3);
  CHECK(options.openslide == "never");
  CHECK_FALSE(options.shrink_on_load);
  config.input.openslide = "/tmp/libopenslide.so.1";
  config.input.max_tiles = std::int64_t{1} << 28;
  CHECK(picture_options(source).openslide == "auto");
  CHECK(picture_options(source).max_tiles == OpenOptions().max_tiles);
}

}  // namespace
}  // namespace slidestream::report
