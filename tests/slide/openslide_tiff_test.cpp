// TIFF files that OpenSlide reads by their tags: the made-up library takes them all.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "slide/loaded_openslide.hpp"
#include "slide/marked_jpeg.hpp"
#include "slide/test_images.hpp"
#include "slide/test_tiff.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

constexpr std::uint64_t rgb_tag = 2, ycbcr_tag = 6;

/// Tiles of 64 x 48 pixels in a row.
TestDirectory jpeg_level(const std::vector<Bytes>& tiles, std::uint64_t photometric = ycbcr_tag) {
  TestDirectory directory = tiled_directory(static_cast<std::uint32_t>(64 * tiles.size()), 48, 64, 48, 3);
  directory.set_short(259, 7).set_short(262, photometric);
  directory.tiles = tiles;
  return directory;
}

TestDirectory plain_level(int samples = 3) {
  TestDirectory directory = tiled_directory(64, 48, 64, 48, samples);
  directory.tiles = {Bytes(static_cast<std::size_t>(64 * 48 * samples))};
  return directory;
}

/// A file that is Philips' by its first directory, and that the library calls what `vendor` says.
class Fixture {
 public:
  Fixture() {
    library().takes_all = true;
    library().vendor = "philips";
    library().levels = {{192, 48, 1.0}};
    library().properties = {{"openslide.vendor", "philips"}};
    library().images.clear();
    library().icc.clear();
    library().open_error.clear();
    library().bad_x = library().bad_y = -1;
  }
  ~Fixture() {
    library().takes_all = false;
    library().vendor = "made-up";
    library().icc.clear();
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  std::filesystem::path write(std::vector<TestDirectory> directories) const {
    directories.front().set_text(305, "Philips DP v1.0").set_text(270, "<DataObject ObjectType=\"DPUfsImport\">");
    return folder.write("slide.tiff", TestTiff{.directories = std::move(directories)}.bytes());
  }
  static OpenOptions options() { return {.openslide = SLIDESTREAM_MADE_UP_OPENSLIDE}; }
  std::shared_ptr<const Slide> open(std::vector<TestDirectory> directories) const {
    auto slide = Slide::open(write(std::move(directories)), options());
    CHECK(slide->info().container == "OpenSlide");
    return slide;
  }
  /// The line behind the path; empty: it opens.
  std::string refusal(std::vector<TestDirectory> directories) const {
    const std::filesystem::path path = write(std::move(directories));
    const std::string text = open_error(path, options());
    CHECK(text.find('\n') == std::string::npos);
    const std::string begin = path.string() + ": ";
    if (!text.empty()) CHECK_MESSAGE(text.starts_with(begin), text);
    return text.empty() ? text : text.substr(begin.size());
  }

  TemporaryFolder folder;
  const Picture picture = make_stained_picture(64, 48, 3);
  const Bytes apart = encode_jpeg(picture);  ///< YCbCr that is sampled apart
  const Bytes rgb = encode_jpeg(picture, {.coding = JpegOptions::Coding::rgb, .horizontal = 1, .vertical = 1});
};

Bytes profile(std::size_t bytes) {
  Bytes made(bytes);
  made[2] = static_cast<std::byte>(bytes >> 8);
  made[3] = static_cast<std::byte>(bytes & 255);
  const auto put = [&made](std::size_t at, const Bytes& text) {
    std::ranges::copy(text, made.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(16, bytes_of("RGB "));
  put(36, bytes_of("acsp"));
  return made;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "OpenSlide: sound Philips and Trestle TIFF opens without a line") {
  TestDirectory label = stripped_directory(8, 8, 8, 3);
  label.tiles = {Bytes(8 * 8 * 3)};
  label.set_short(274, 3);
  for (const char* vendor : {"philips", "trestle"}) {
    library().vendor = vendor;
    // Tiles without bytes are background. Strips are no level.
    CHECK(open({jpeg_level({apart, {}, with_jfif(apart)}), jpeg_level({with_adobe(apart, 1)}), jpeg_level({Bytes()}),
                label})
              ->info()
              .warnings.empty());
    CHECK(refusal({jpeg_level({rgb}, rgb_tag), jpeg_level({with_adobe(rgb, 0)}, rgb_tag)}).empty());
    CHECK(refusal({plain_level(), plain_level(1)}).empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: an Orientation that it doesn't apply is refused") {
  for (const char* vendor : {"philips", "trestle"}) {
    library().vendor = vendor;
    for (std::uint64_t orientation = 1; orientation <= 8; ++orientation) {
      const std::string expected =
          "Orientation " + std::to_string(orientation) + " isn't applied by OpenSlide, which reads this file";
      CHECK(refusal({jpeg_level({apart}).set_short(274, orientation)}) ==
            (orientation == 1 ? "" : "level 0: " + expected));
      CHECK(refusal({jpeg_level({apart}), jpeg_level({apart}).set_short(274, orientation)}) ==
            (orientation == 1 ? "" : "level 1: " + expected));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: tiles that aren't what PhotometricInterpretation says are refused") {
  const auto line = [](const std::string& tile, const std::string& tag) {
    return tile +
           " by its markers, sampling and tables, but OpenSlide, which reads this file, follows "
           "PhotometricInterpretation " +
           tag;
  };
  CHECK(refusal({jpeg_level({with_jfif(apart)}, rgb_tag)}) == line("level 0: tile 0 is YCbCr", "2 RGB"));
  CHECK(refusal({jpeg_level({apart}, rgb_tag)}) == line("level 0: tile 0 is YCbCr", "2 RGB"));
  CHECK(refusal({jpeg_level({with_adobe(rgb, 0)})}) == line("level 0: tile 0 is RGB", "6 YCbCr"));
  CHECK(refusal({jpeg_level({with_jfif(rgb)}, rgb_tag)}) == line("level 0: tile 0 contradicts itself", "2 RGB"));
  // Of each level the first, the middle and the last that are there.
  CHECK(refusal({jpeg_level({apart}), jpeg_level({Bytes(), with_jfif(apart)}, rgb_tag)}) ==
        line("level 1: tile 1 is YCbCr", "2 RGB"));
  CHECK(refusal({jpeg_level({rgb, with_jfif(apart), rgb}, rgb_tag)}) == line("level 0: tile 1 is YCbCr", "2 RGB"));
  CHECK(refusal({jpeg_level({rgb, rgb, rgb, with_jfif(apart)}, rgb_tag)}) == line("level 0: tile 3 is YCbCr", "2 RGB"));
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: levels of TIFF are held to what TIFF that is read here is") {
  const auto check = [&](const TestDirectory& directory, const std::string& text) {
    for (const std::string& found : {refusal({directory}), refusal({plain_level(), directory})}) {
      CHECK_MESSAGE(found.find(text) != std::string::npos, found);
    }
  };
  check(plain_level().set(258, short_, {16, 16, 16}), "BitsPerSample 16 isn't supported");
  check(plain_level().set(339, short_, {2, 2, 2}), "SampleFormat 2 isn't supported");
  check(plain_level().set_short(266, 2), "FillOrder 2 isn't supported");
  check(plain_level().set_short(317, 2), "Predictor 2 isn't supported with compression none");
  check(plain_level().set_short(262, 8), "PhotometricInterpretation 8 isn't supported");
  check(plain_level(4), "SamplesPerPixel 4 with PhotometricInterpretation 2: OpenSlide, which reads this file, takes");
  check(plain_level(4).set_short(338, 0), "SamplesPerPixel 4 with");
  check(plain_level(2), "SamplesPerPixel 2 with PhotometricInterpretation 1");
  TestDirectory twice = plain_level();
  twice.tags.push_back({258, short_, {8, 8, 8}, {}, 1});
  check(twice, "BitsPerSample stands twice");
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a range of samples that nobody applies gets a line") {
  const auto directory = jpeg_level({apart}).set(532, rational, {16, 235, 128, 240, 128, 240});
  CHECK(open({directory, directory})->info().warnings ==
        std::vector<std::string>{"ReferenceBlackWhite, another range of samples than 0 to 255, isn't applied; colours "
                                 "may look different"});
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: the ICC profile of the first level counts where the library gives none") {
  const TestDirectory level = jpeg_level({apart});
  const TestDirectory with_profile = jpeg_level({apart}).set_bytes(34675, profile(300));
  CHECK(open({level, with_profile})->icc_profile(0).bytes.empty());
  CHECK(open({with_profile, level})->icc_profile(0).bytes == profile(300));
  CHECK(open({jpeg_level({apart}).set_bytes(34675, Bytes(200)), level})->icc_profile(0).fault ==
        "the ICC profile of 200 bytes is damaged");
  library().icc.assign(20, 0);
  CHECK(open({with_profile, level})->icc_profile(0).fault ==
        "the ICC profile has 20 bytes, supported are 128 to 16777216");
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: levels that share bytes don't make the look at them long") {
  constexpr std::size_t levels = 20, comments = 16, comment_bytes = 65535;
  constexpr std::uint64_t first_place = 8;
  // Tiles whose frame never comes.
  Bytes tile = bytes_of("\xFF\xD8");
  for (std::size_t i = 0; i < comments; ++i) {
    const Bytes head = bytes_of("\xFF\xFE\xFF\xFF");
    tile.insert(tile.end(), head.begin(), head.end());
    tile.resize(tile.size() + comment_bytes - 2);
  }
  std::vector<TestDirectory> directories(levels, jpeg_level(std::vector<Bytes>(3)));
  for (TestDirectory& directory : directories) {
    directory.tiles.clear();
    directory.set(324, long_, std::vector<std::uint64_t>(3, first_place));
    directory.set(325, long_, std::vector<std::uint64_t>(3, tile.size()));
  }
  directories.front().tiles = {tile};
  CHECK(refusal(directories).find("share bytes") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a vendor's TIFF that it doesn't recognise isn't read as plain TIFF") {
  const auto refusal_of = [&](const std::function<void(TestDirectory&)>& change) {
    TestDirectory directory = tiled_directory(64, 64, 64, 64, 3);
    directory.tiles = {Bytes(64 * 64 * 3)};
    change(directory);
    const std::filesystem::path path = folder.write("slide.tif", TestTiff{.directories = {directory}}.bytes());
    const std::string text = open_error(path, options());
    if (!text.empty()) CHECK_MESSAGE(text.starts_with(path.string() + ": "), text);
    return text.substr(std::min(text.size(), path.string().size() + 2));
  };
  const std::string ending =
      ", which OpenSlide reads: OpenSlide 4.9.made-up doesn't recognise it; its tags or its XML are damaged, or that "
      "version is too old";
  for (const bool is_generic : {false, true}) {
    CAPTURE(is_generic);
    library().takes_all = is_generic;
    library().vendor = "generic-tiff";
    // A barcode with an ampersand isn't XML.
    CHECK(refusal_of([](TestDirectory& to) {
            const std::string_view xmp = "<iScan Magnification=\"20\" BarCode1D=\"A&B\"/>";
            const auto bytes = std::as_bytes(std::span(xmp));
            to.set_bytes(700, Bytes(bytes.begin(), bytes.end()));
          }) == "is Ventana BIF" + ending);
    CHECK(refusal_of([](TestDirectory& to) { to.set(65420, long_, {1}); }) == "is Hamamatsu NDPI" + ending);
    CHECK(refusal_of([](TestDirectory& to) {
            to.set_text(270, R"(<scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01">)");
          }) == "is Leica SCN" + ending);
    CHECK(refusal_of([](TestDirectory& to) {
            to.set_text(305, "Philips DP v1.0").set_text(270, "<DataObject ObjectType=\"DPUfsImport\">");
          }) == "is Philips TIFF" + ending);
    CHECK(refusal_of([](TestDirectory& to) { to.set_text(305, "MedScan").set_text(270, "OverlapsXY= 4 4"); }) ==
          "is Trestle TIFF" + ending);
    CHECK(refusal_of([](TestDirectory& to) { to.set_text(270, "Aperio Image Library"); }).empty());
    CHECK(refusal_of([](TestDirectory&) {}).empty());
  }
}
