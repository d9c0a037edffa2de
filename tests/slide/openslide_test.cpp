#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "slide/decode_memory.hpp"
#include "slide/level_coding.hpp"
#include "slide/loaded_openslide.hpp"
#include "slide/luminance.hpp"
#include "slide/test_images.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

namespace {

namespace fs = std::filesystem;

/// A slide of the made-up library, which begins with what a test sets.
class Scene {
 public:
  Scene() {
    MadeUpOpenSlide& made = library();
    made.levels = {{1300, 1000, 1.0}, {650, 500, 2.0}, {520, 400, 2.5}};
    made.properties = {{"openslide.vendor", "made-up"},
                       {"openslide.mpp-x", "0.25"},
                       {"openslide.mpp-y", "0.25"},
                       {"openslide.objective-power", "40"},
                       {"made-up.Stain", "H&E"}};
    for (const char* level : {"0", "1", "2"}) {
      made.properties[std::string("openslide.level[") + level + "].tile-width"] = "256";
      made.properties[std::string("openslide.level[") + level + "].tile-height"] = "512";
    }
    made.images = {"label", "bad", "huge"};
    made.icc.clear();
    made.open_error.clear();
    made.read_error = "a\nbad tile";
    made.bad_x = made.bad_y = -1;
    made.opened = made.closed = made.shared = made.used_after_error = made.without_cache = 0;
    made.reads.clear();
    path_ = folder_.write("slide.any", std::string("made up"));
  }

  const fs::path& path() const { return path_; }
  const TemporaryFolder& folder() const { return folder_; }
  static OpenOptions options() { return {.openslide = SLIDESTREAM_MADE_UP_OPENSLIDE}; }
  std::shared_ptr<const Slide> open() const { return Slide::open(path_, options()); }
  std::string refusal() const {
    try {
      open();
      return {};
    } catch (const SlideError& error) {
      const std::string text = error.what();
      CHECK(text.find('\n') == std::string::npos);
      CHECK_MESSAGE(text.starts_with(path_.string() + ": "), text);
      return text.substr(std::min(text.size(), path_.string().size() + 2));
    }
  }

 private:
  TemporaryFolder folder_;
  fs::path path_;
};

/// A level's RGB as the formula has it, each tile from its own corner.
std::vector<std::uint8_t> expected_level(const Level& level, double factor, const std::vector<int>& background) {
  std::vector<std::uint8_t> rgb;
  for (std::int64_t y = 0; y < level.height; ++y) {
    for (std::int64_t x = 0; x < level.width; ++x) {
      const auto at = [factor](std::int64_t pixel, std::int64_t tile) {
        const std::int64_t begin = pixel / tile * tile;
        return std::llround(static_cast<double>(begin) * factor) +
               std::llround(static_cast<double>(pixel - begin) * factor);
      };
      const std::uint32_t pixel = MadeUpOpenSlide::pixel(at(x, level.tile_width), at(y, level.tile_height));
      const int alpha = static_cast<int>(pixel >> 24);
      for (int channel = 0; channel < 3; ++channel) {
        const int sample = static_cast<int>(pixel >> (16 - 8 * channel) & 255);
        const double behind = background[static_cast<std::size_t>(channel)] * (255 - alpha) / 255.0;
        rgb.push_back(static_cast<std::uint8_t>(std::min(255L, sample + std::lround(behind))));
      }
    }
  }
  return rgb;
}

}  // namespace

TEST_CASE("OpenSlide: whole levels are its pixels over the background (long)") {
  for (const bool coloured : {false, true}) {
    const Scene scene;
    if (coloured) library().properties["openslide.background-color"] = "20C0FF";
    const std::vector<int> background = coloured ? std::vector{0x20, 0xC0, 0xFF} : std::vector{255, 255, 255};
    const auto slide = scene.open();
    REQUIRE(slide->info().levels.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      const Level& level = slide->info().levels[i];
      CHECK(level.codec == Codec::openslide);
      const std::vector<std::uint8_t> expected = expected_level(level, library().levels[i].downsample, background);
      CHECK(read_level_rgb(*slide, i) == expected);
      std::vector<std::uint8_t> luminance(expected.size() / 3);
      interleaved_to_luminance(luminance.data(), expected.data(), static_cast<std::int64_t>(luminance.size()), 3,
                               Colour::rgb);
      CHECK(read_level(*slide, i) == luminance);
    }
    CHECK(library().without_cache == 0);
  }
}

TEST_CASE("OpenSlide: any rectangle has the pixels of the whole level") {
  const Scene scene;
  const auto slide = scene.open();
  for (std::size_t i = 0; i < 3; ++i) {
    const Level& level = slide->info().levels[i];
    const std::vector<std::uint8_t> whole = read_level_rgb(*slide, i);
    for (const auto& [x, y, width, height] : {std::array<std::int64_t, 4>{0, 0, 1, 1},
                                              {level.width - 1, level.height - 1, 1, 1},
                                              {5, 7, 300, 200},
                                              {500, 390, 20, 10},
                                              {level.width - 30, 0, 30, level.height}}) {
      std::vector<std::uint8_t> part(static_cast<std::size_t>(3 * width * height));
      read_rgb(*slide, i, x, y, {part.data(), 3 * width, width, height, rgb_format});
      bool same = true;
      for (std::int64_t row = 0; row < height; ++row) {
        same = same && std::equal(part.begin() + 3 * width * row, part.begin() + 3 * width * (row + 1),
                                  whole.begin() + 3 * (level.width * (y + row) + x));
      }
      CHECK(same);
    }
  }
  // Where a level's factor is whole, no more is read than was asked for.
  library().reads.clear();
  std::vector<std::uint8_t> pixel(3);
  read_rgb(*slide, 1, 600, 400, {pixel.data(), 3, 1, 1, rgb_format});
  CHECK(library().reads == std::vector<MadeUpOpenSlide::Read>{{1200, 800, 1, 1, 1}});
}

TEST_CASE("OpenSlide: both kinds of pixels come from one read") {
  const Scene scene;
  const auto slide = scene.open();
  const Level& level = slide->info().levels[0];
  const std::int64_t side = level.tile_width;
  library().reads.clear();
  TileDecoder decoder;
  const auto last = level.columns * level.rows - 1;
  const std::byte stands_for_it{};
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * side * side), 7);
  std::vector<std::uint8_t> luminance(static_cast<std::size_t>(side * side), 7);
  decoder.decode_both(*slide, 0, last, {&stands_for_it, 1}, 0, 0, {rgb.data(), 3 * side, side, side, rgb_format},
                      {luminance.data(), side, side, side});
  CHECK(library().reads.size() == 1);
  std::vector<std::uint8_t> again(rgb.size(), 9);
  decoder.decode(*slide, 0, last, {&stands_for_it, 1}, 0, 0, {again.data(), 3 * side, side, side, rgb_format});
  CHECK(again == rgb);
  interleaved_to_luminance(again.data(), rgb.data(), side * side, 3, Colour::rgb);
  again.resize(luminance.size());
  CHECK(again == luminance);
  // Beyond the slide it is white.
  CHECK(rgb.back() == 255);
  CHECK(luminance.back() == 255);
}

TEST_CASE("OpenSlide: a tile is whole tiles of the file") {
  for (const auto& one : {std::pair{"256", 512},
                          {"240", 480},
                          {"300", 600},
                          {"1024", 1024},
                          {"8", 512},
                          {"512", 512},
                          {"2048", 1024},
                          {"0", 1024},
                          {"-3", 1024},
                          {"x", 1024},
                          {"", 1024}}) {
    const char* const own = one.first;
    const int expected = one.second;
    CAPTURE(own);
    const Scene scene;
    for (const char* side : {"[0].tile-width", "[1].tile-height"}) {
      library().properties.erase(std::string("openslide.level") + side);
    }
    library().properties["openslide.level[1].tile-width"] = own;
    const auto slide = scene.open();
    CHECK(slide->info().levels[1].tile_width == expected);
    CHECK(slide->info().levels[1].tile_height == 1024);
    CHECK(slide->info().levels[0].tile_width == 1024);
  }
}

TEST_CASE("OpenSlide: large tiles of the file are counted, and kept") {
  const Scene scene;
  library().levels = {{20000, 20000, 1.0}};
  const auto set = [](const char* width, const char* height) {
    library().properties["openslide.level[0].tile-width"] = width;
    library().properties["openslide.level[0].tile-height"] = height;
  };
  set("1024", "1024");
  const auto small = scene.open();
  set("8192", "4096");
  const auto large = scene.open();
  CHECK(library().cached == std::size_t{8} * 8192 * 4096);
  const auto bytes = [](const Slide& slide) { return decoding_bytes(slide.coded_level(0), coding_of(slide, 0)); };
  CHECK(bytes(*large) - bytes(*small) == std::uint64_t{7} * (8192 * 4096 - 1024 * 1024));
  set("20000", "20000");
  CHECK(scene.refusal() ==
        "OpenSlide 4.9.made-up: level 0 is in tiles of 20000 x 20000 pixels; supported are up to 2^28");
  set("9223372036854775807", "9223372036854775807");
  CHECK(scene.refusal().find("2^28") != std::string::npos);
}

TEST_CASE("OpenSlide: what a slide is") {
  const Scene scene;
  const auto slide = scene.open();
  const SlideInfo& info = slide->info();
  CHECK(info.format == "made-up");
  CHECK(info.container == "OpenSlide");
  CHECK(info.library == std::string("OpenSlide 4.9.made-up, ") + SLIDESTREAM_MADE_UP_OPENSLIDE);
  CHECK(info.mpp == 0.25);
  CHECK_FALSE(info.mpp_y);
  CHECK(info.magnification == 40.0);
  CHECK(info.properties == std::map<std::string, std::string>{{"made-up.Stain", "H&E"}});
  CHECK(info.associated == std::vector<std::string>{"label", "bad", "huge"});
  CHECK(info.levels[2].downsample == 2.5);
  CHECK(slide->icc_profile(0).bytes.empty());
  CHECK(slide->icc_profile(0).fault.empty());
  CHECK(library().cached == std::size_t{32} << 20);
  CHECK(table_bytes(*slide) == library().cached + sizeof(TileRange) * (6 + 2 + 2));
  const AssociatedImage label = slide->read_associated(0);
  CHECK(label.size == Size{30, 20});
  // Over white, as of other containers.
  const std::uint32_t first = MadeUpOpenSlide::pixel(0, 0);
  CHECK(label.pixels[0] == (first >> 16 & 255) + 255 - (first >> 24));
  CHECK_THROWS_WITH_AS(slide->read_associated(1),
                       (scene.path().string() + ": the associated image bad can't be read: no such bytes").c_str(),
                       SlideError);
  CHECK_THROWS_AS(slide->read_associated(2), SlideError);
  // The handle that failed is gone.
  CHECK(slide->read_associated(0).pixels == label.pixels);
  CHECK(library().used_after_error == 0);
}

TEST_CASE("OpenSlide: numbers that aren't are not known") {
  const Scene scene;
  for (const char* odd : {"", "0", "-1", "nan", "inf", "0.25 um", "1e999", "x"}) {
    CAPTURE(odd);
    library().properties["openslide.mpp-x"] = library().properties["openslide.mpp-y"] = odd;
    library().properties["openslide.objective-power"] = odd;
    library().properties["openslide.background-color"] = odd;
    const auto slide = scene.open();
    CHECK_FALSE(slide->info().mpp);
    CHECK_FALSE(slide->info().magnification);
  }
}

TEST_CASE("OpenSlide: sizes that aren't one pixel's are passed over, with a line") {
  const Scene scene;
  const auto check = [&](const char* x, const char* y, const std::vector<std::string>& lines) {
    library().properties["openslide.mpp-x"] = x;
    library().properties["openslide.mpp-y"] = y;
    const auto slide = scene.open();
    CHECK_FALSE(slide->info().mpp);
    CHECK(slide->info().warnings == lines);
  };
  check("0.25", "250",
        {"OpenSlide says 0.25 x 250 micrometres per pixel, as if a unit were missing: both are passed "
         "over; input.mpp sets the size"});
  const std::string no_size = " micrometres, no size of a slide's pixel: it is passed over";
  check("20000", "20000", {"openslide.mpp-x is 20000" + no_size, "openslide.mpp-y is 20000" + no_size});
  check("1000", "1000", {"openslide.mpp-x is 1000" + no_size, "openslide.mpp-y is 1000" + no_size});
  check("1e-4", "1e-4", {"openslide.mpp-x is 0.0001" + no_size, "openslide.mpp-y is 0.0001" + no_size});
}

TEST_CASE("OpenSlide: ICC profiles") {
  const Scene scene;
  library().icc.assign(200, 0);
  CHECK(scene.open()->icc_profile(0).fault == "the ICC profile of 200 bytes is damaged");
  library().icc[3] = 200;
  std::memcpy(library().icc.data() + 16, "RGB ", 4);
  std::memcpy(library().icc.data() + 36, "acsp", 4);
  const IccProfile profile = scene.open()->icc_profile(1);
  CHECK(profile.fault.empty());
  CHECK(profile.space == "RGB");
  CHECK(profile.bytes.size() == 200);
  library().icc.assign(20, 0);
  CHECK(scene.open()->icc_profile(0).fault == "the ICC profile has 20 bytes, supported are 128 to 16777216");
}

TEST_CASE("OpenSlide: a handle that failed isn't used again, and serves one thread at a time (long)") {
  for (const bool bad : {false, true}) {
    const Scene scene;
    library().levels = {{4096, 4096, 1.0}};
    if (bad) library().bad_x = library().bad_y = 1000;
    std::vector<std::uint8_t> whole(std::size_t{3} << 24);
    {
      const auto slide = scene.open();
      std::atomic<int> failed{0};
      std::vector<std::thread> threads;
      for (std::int64_t i = 0; i < 8; ++i) {
        threads.emplace_back([&, i] {
          for (std::int64_t row = i; row < 64; row += 8) {
            const HostPixels out = {whole.data() + 3 * 4096 * 64 * row, 3 * 4096, 4096, 64, rgb_format};
            try {
              read_rgb(*slide, 0, 0, 64 * row, out);
            } catch (const SlideError& error) {
              ++failed;
              CHECK(std::string_view(error.what()) ==
                    scene.path().string() + ": level 0 tile 9 (column 1, row 1): OpenSlide 4.9.made-up: a bad tile");
              read_rgb(*slide, 0, 0, 64 * row, out, BadTilePolicy::white);
            }
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      CHECK(failed == (bad ? 1 : 0));
      CHECK(library().shared == 0);
      CHECK(library().used_after_error == 0);
      CHECK(library().without_cache == 0);
      CHECK(library().opened <= 8 + (bad ? 2 : 0));
      CHECK(library().caches == 1);
    }
    CHECK(library().opened == library().closed);
    CHECK(library().caches == 0);
    // Only the rectangle of the bad tile that was asked for is white.
    bool as_expected = true;
    for (std::int64_t y = 0; y < 4096; ++y) {
      for (std::int64_t x = 0; x < 4096; ++x) {
        const bool is_white = bad && x / 512 == 1 && y / 64 == 1000 / 64;
        const std::uint32_t pixel = MadeUpOpenSlide::pixel(x, y);
        const std::uint32_t red = (pixel >> 16 & 255) + 255 - (pixel >> 24);
        as_expected = as_expected && whole[static_cast<std::size_t>(3 * (4096 * y + x))] == (is_white ? 255 : red);
      }
    }
    CHECK(as_expected);
  }
}

TEST_CASE("OpenSlide: slides that can't be used are one line") {
  const std::string who = "OpenSlide 4.9.made-up: ";
  {
    const Scene scene;
    library().open_error = "no\nindex";
    CHECK(scene.refusal() == who + "no index");
    CHECK(library().opened == library().closed);
  }
  const auto with_levels = [&](std::vector<MadeUpOpenSlide::MadeUpLevel> levels) {
    const Scene scene;
    library().levels = std::move(levels);
    std::string text = scene.refusal();
    CHECK(library().opened == library().closed);
    CHECK(library().caches == 0);
    return text;
  };
  CHECK(with_levels({}) == who + "the slide has no level");
  CHECK(with_levels({{-1, -1, -1.0}}) == who + "level 0 has -1 x -1 pixels");
  CHECK(with_levels({{10, 0, 1.0}}) == who + "level 0 has 10 x 0 pixels");
  CHECK(with_levels({{std::int64_t{1} << 62, std::int64_t{1} << 62, 1.0}}).find("max_pixels") != std::string::npos);
  CHECK(with_levels({{std::int64_t{1} << 36, 1, 1.0}}).find("input.max_tiles") != std::string::npos);
  CHECK(with_levels({{10, 10, 1.0}, {5, 5, -1.0}}) == who + "level 1 has no downsampling factor");
  CHECK(with_levels(std::vector<MadeUpOpenSlide::MadeUpLevel>(65, {10, 10, 1.0})).find("more than 64 levels") !=
        std::string::npos);
}

TEST_CASE("OpenSlide: a file that was replaced is noticed") {
  const Scene scene;
  const auto slide = scene.open();
  library().bad_x = library().bad_y = 10;
  std::vector<std::uint8_t> pixels(3);
  const HostPixels out = {pixels.data(), 3, 1, 1, rgb_format};
  CHECK_THROWS_AS(read_rgb(*slide, 0, 10, 10, out), SlideError);
  // The next handle would be the other file's.
  fs::rename(scene.folder().write("other", std::string("made up, too")), scene.path());
  try {
    read_rgb(*slide, 0, 0, 0, out);
    FAIL("read from another file");
  } catch (const SlideError& error) {
    CHECK(std::string_view(error.what()).ends_with("OpenSlide 4.9.made-up: the file was replaced"));
  }
}

TEST_CASE("OpenSlide: what it doesn't know either is TIFF's to refuse") {
  const Scene scene;
  const fs::path other = scene.folder().write("slide.svs", std::string("anything else"));
  const auto refusal = [&](const std::string& openslide) {
    try {
      Slide::open(other, {.openslide = openslide});
    } catch (const SlideError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string by_tiff = refusal("never");
  CHECK(by_tiff.find("TIFF") != std::string::npos);
  CHECK(refusal(SLIDESTREAM_MADE_UP_OPENSLIDE) == by_tiff);
  CHECK(refusal("/none.so") == by_tiff);
}

}  // namespace slidestream::test
