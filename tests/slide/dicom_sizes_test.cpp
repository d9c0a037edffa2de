#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/dicom_pictures.hpp"
#include "slide/test_dicom.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

namespace {

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("DICOM: frames may say the pixel size, each the same") {
  const TemporaryFolder folder;
  // Of each frame in turn; empty: it doesn't say.
  const auto info_of = [&](const std::vector<std::string>& spacings, const char* shared, bool sparse) {
    const auto groups = [](DicomSet set, const std::string& spacing) {
      DicomSet measures;
      measures.text(0x00280030, "DS", spacing);
      if (!spacing.empty()) set.items(0x00289110, {measures});
      return set;
    };
    DicomFile file = make_dicom(picture_for(Codec::jpeg), {.sparse = sparse});
    std::vector<DicomSet> frames;
    for (int y = 0; y < height; y += 64) {
      for (int x = 0; x < width; x += 64) {
        const std::string& spacing = spacings[frames.size() % spacings.size()];
        frames.push_back(groups(sparse ? dicom_frame_at(x + 1, y + 1) : DicomSet(), spacing));
      }
    }
    file.set.items(0x52009230, frames).items(0x52009229, {groups({}, shared)});
    return Slide::open(folder.write("slide.dcm", file.encode()))->info();
  };
  const Lines differs = {"PixelSpacing (0028,0030) differs between its frames: it is passed over"};
  const std::string size = "0.0005\\0.00025", other = "0.0005\\0.0005";
  for (const bool sparse : {false, true}) {
    CAPTURE(sparse);
    const auto check = [](const SlideInfo& info, const Lines& lines) {
      CHECK(info.mpp.value_or(0) == doctest::Approx(0.25));
      CHECK(info.mpp_y.value_or(0) == doctest::Approx(0.5));
      CHECK(info.warnings == lines);
    };
    check(info_of({size}, "", sparse), {});
    // Beside the size that all frames share, theirs gets a line where it is more than 2 % off.
    const auto contradicts = [](const std::string& frame) {
      return Lines{"PixelSpacing (0028,0030) of all frames says 0.25 x 0.5 micrometres per pixel, and frame " + frame +
                   " 0.5: PixelSpacing (0028,0030) of all frames counts"};
    };
    check(info_of({other}, size.c_str(), sparse), contradicts("1"));
    check(info_of({size, other}, size.c_str(), sparse), contradicts("2"));
    check(info_of({"0.00050\\2.5e-4", "", other}, size.c_str(), sparse), contradicts("3"));
    for (const char* own : {"0.0005\\0.00025", "0.000505\\0.000253", "0.5", "x\\y", "0\\0", "-1\\-1", "1\\2\\3"}) {
      CAPTURE(own);
      check(info_of({own}, size.c_str(), sparse), {});
    }
    for (const auto& spacings : {Lines{size, other}, {size, size, size, size, size, other}, {size, ""}, {"", size}}) {
      const SlideInfo info = info_of(spacings, "", sparse);
      CHECK_FALSE(info.mpp);
      CHECK_FALSE(info.mpp_y);
      CHECK(info.warnings == differs);
    }
    CHECK_FALSE(info_of({""}, "", sparse).mpp);
    CHECK(info_of({""}, "", sparse).warnings == Lines{});
  }
}

TEST_CASE("DICOM: parts of a concatenation may contradict each other's pixel size: the first counts, with a line") {
  const TemporaryFolder folder;
  const DicomFile whole = make_dicom(picture_for(Codec::jpeg));
  const auto info_of = [&](const char* second) {
    for (int i = 0; i < 2; ++i) {
      DicomFile part = whole;
      part.frames.assign(whole.frames.begin() + std::ptrdiff_t{3} * i,
                         whole.frames.begin() + std::ptrdiff_t{3} * (i + 1));
      DicomSet measures;
      measures.text(0x00280030, "DS", i == 0 ? "0.0005\\0.0005" : second);
      DicomSet shared;
      shared.items(0x00289110, {measures});
      part.set.text(0x00080018, "UI", "1.2.3.1." + std::to_string(i))
          .text(0x00209161, "UI", "1.2.3.9")
          .number(0x00209162, "US", i + 1)
          .number(0x00209163, "US", 2)
          .number(0x00209228, "UL", std::int64_t{3} * i)
          .text(0x00280008, "IS", "3")
          .items(0x52009229, {shared});
      folder.write("part-" + std::to_string(i) + ".dcm", part.encode());
    }
    return Slide::open(folder.path() / "part-0.dcm")->info();
  };
  for (const char* same : {"0.0005\\0.0005", "0.000505\\0.000505"}) CHECK(info_of(same).warnings == Lines{});
  const SlideInfo info = info_of("0.001\\0.001");
  CHECK(info.mpp.value_or(0) == doctest::Approx(0.5));
  CHECK(info.warnings == Lines{"PixelSpacing (0028,0030) of part 1 says 0.5 micrometres per pixel, and that of part 2 "
                               "1: PixelSpacing (0028,0030) of part 1 counts"});
}

TEST_CASE("DICOM: a level's PixelSpacing may contradict that of the largest image, which counts, with a line") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg);
  const fs::path path = folder.write("level-0.dcm", make_dicom(picture).encode());
  const auto info_of = [&](const char* spacing) {
    const DicomFile level = make_dicom(reduced(picture, 2), {.instance = "1.2.3.2", .spacing = spacing});
    folder.write("level-1.dcm", level.encode());
    return Slide::open(path)->info();
  };
  const auto check = [&](const char* spacing, const Lines& lines) {
    CAPTURE(spacing);
    const SlideInfo info = info_of(spacing);
    CHECK(info.levels.size() == 2);
    CHECK(info.mpp.value_or(0) == doctest::Approx(0.5));
    CHECK(info.warnings == lines);
  };
  const auto contradiction = [](const std::string& size) {
    return Lines{
        "PixelSpacing (0028,0030) of the largest image says 0.5 micrometres per pixel, and that of the image "
        "of 75 x 50 pixels gives it " +
        size + ": PixelSpacing (0028,0030) of the largest image counts"};
  };
  check("0.001\\0.001", {});
  // Two of its 75 pixels, and what pads it to whole tiles.
  check("0.00098\\0.00098", {});
  check("0.004\\0.004", {});
  check("0.00095\\0.00095", contradiction("0.475"));
  check("0.00055\\0.00055", contradiction("0.275"));
  check("0.001\\0.0005", contradiction("0.25 x 0.5"));
  check("0.01\\0.01", contradiction("5"));
}

TEST_CASE("DICOM: a pixel size that no slide has is passed over, with a line") {
  const TemporaryFolder folder;
  const auto info_of = [&](const std::string& spacing, const char* power) {
    DicomFile file = make_dicom(picture_for(Codec::jpeg));
    DicomSet measures;
    measures.text(0x00280030, "DS", spacing);
    DicomSet shared;
    shared.items(0x00289110, {measures});
    DicomSet path;
    path.text(0x00480106, "SH", "1");
    if (*power != 0) path.text(0x00480112, "DS", power);
    file.set.items(0x52009229, {shared}).items(0x00480105, {path});
    return Slide::open(folder.write("slide.dcm", file.encode()))->info();
  };
  const auto line = [](const std::string& size) {
    return std::vector{"PixelSpacing (0028,0030) is " + size +
                       " micrometres, no size of a slide's pixel: it is passed over"};
  };
  // Micrometres in place of millimetres.
  const auto check_none = [&](const char* spacing, const char* power, const Lines& lines) {
    const SlideInfo info = info_of(spacing, power);
    CHECK_FALSE(info.mpp);
    CHECK_FALSE(info.mpp_y);
    CHECK(info.warnings == lines);
  };
  const auto apart = [](const std::string& sizes) {
    return Lines{"PixelSpacing (0028,0030) says " + sizes +
                 " micrometres per pixel, as if a unit were missing: both are passed over; input.mpp sets the size"};
  };
  check_none("0.25\\0.25", "40", line("250"));
  CHECK(info_of("0.25\\0.25", "40").magnification.value_or(0) == 40.0);
  // Of one side, whether or not the other alone may be a pixel's.
  check_none("0.00025\\0.25", "40", apart("250 x 0.25"));
  check_none("0.25\\0.00025", "40", apart("0.25 x 250"));
  check_none("0.25\\0.00025", "", apart("0.25 x 250"));
  CHECK(info_of("0.0201\\0.0201", "40").warnings == line("20.1"));
  CHECK(info_of("0.02\\0.02", "40").mpp.value_or(0) == doctest::Approx(20.0));
  CHECK(info_of("1e-7\\1e-7", "40").warnings == line("0.0001"));
  // Of a small power pixels may be larger.
  CHECK(info_of("0.1\\0.1", "4").mpp.value_or(0) == doctest::Approx(100.0));
  CHECK(info_of("0.101\\0.101", "4").warnings == line("101"));
  CHECK(info_of("0.101\\0.101", "1").warnings == line("101"));
  // Without an objective it may be a picture of the whole glass.
  CHECK(info_of("0.1\\0.1", "").mpp.value_or(0) == doctest::Approx(100.0));
  CHECK(info_of("0.101\\0.101", "").warnings == line("101"));
  check_none("1\\1", "", line("1000"));
  for (const char* none : {"0\\0", "0.00025\\0", "-0.00025\\0.00025"}) {
    CAPTURE(none);
    check_none(none, "40", {"PixelSpacing (0028,0030) isn't two numbers above 0: it is passed over"});
  }
}

TEST_CASE("DICOM: the imaged volume says the pixel size where PixelSpacing doesn't, and may contradict it") {
  const TemporaryFolder folder;
  // The volume's millimetres, of 150 x 100 pixels.
  const auto info_of = [&](const std::string& spacing, std::optional<float> across, std::optional<float> down) {
    DicomFile file = make_dicom(picture_for(Codec::jpeg));
    DicomSet measures;
    if (!spacing.empty()) measures.text(0x00280030, "DS", spacing);
    DicomSet shared;
    shared.items(0x00289110, {measures});
    file.set.items(0x52009229, {shared});
    if (across) file.set.real(0x00480001, *across);
    if (down) file.set.real(0x00480002, *down);
    return Slide::open(folder.write("slide.dcm", file.encode()))->info();
  };
  const auto check = [](const SlideInfo& info, double x, std::optional<double> y, const Lines& lines) {
    CHECK(info.mpp.value_or(0) == doctest::Approx(x));
    CHECK(info.mpp_y.has_value() == y.has_value());
    CHECK(info.mpp_y.value_or(0) == doctest::Approx(y.value_or(0)));
    CHECK(info.warnings == lines);
  };
  check(info_of("", 0.0375F, 0.05F), 0.25, 0.5, {});
  check(info_of("", 0.0375F, 0.025F), 0.25, {}, {});
  const auto of_one = [](const std::string& direction, const std::string& size) {
    return Lines{"the imaged volume (0048,0001) says the size of pixels only " + direction + ", " + size +
                 " micrometres: they are taken for square"};
  };
  check(info_of("", 0.0375F, {}), 0.25, {}, of_one("across", "0.25"));
  check(info_of("", {}, 0.05F), 0.5, {}, of_one("down", "0.5"));
  // Nobody says it: no line, as of other slides.
  check(info_of("", {}, {}), 0.0, {}, {});
  check(info_of("", 0.0375F, 50.0F), 0.0, {},
        {"the imaged volume (0048,0001) says 0.25 x 500 micrometres per pixel, as if a unit were missing: both are "
         "passed over; input.mpp sets the size"});
  const Lines unsound = {
      "ImagedVolumeWidth (0048,0001) or ImagedVolumeHeight (0048,0002) can't be read as a number above 0: it is passed "
      "over"};
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const float none : {0.0F, -1.0F, infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    check(info_of("", none, none), 0.0, {}, unsound);
    check(info_of("0.0005\\0.00025", none, 0.05F), 0.25, 0.5, {});
  }
  const auto no_size = [](const std::string& element) {
    return "a pixel's part of " + element + " is 250 micrometres, no size of a slide's pixel: it is passed over";
  };
  check(info_of("", 37.5F, 25.0F), 0.0, {},
        {no_size("ImagedVolumeWidth (0048,0001)"), no_size("ImagedVolumeHeight (0048,0002)")});
  // Rows first, then columns.
  const std::string spacing = "0.0005\\0.00025";
  check(info_of(spacing, 0.0375F, 0.05F), 0.25, 0.5, {});
  check(info_of(spacing, 0.0382F, 0.0491F), 0.25, 0.5, {});
  const auto contradiction = [](const std::string& size) {
    return Lines{"PixelSpacing (0028,0030) says 0.25 x 0.5 micrometres per pixel, and the imaged volume (0048,0001) " +
                 size + ": PixelSpacing (0028,0030) counts"};
  };
  check(info_of(spacing, 0.0383F, 0.05F), 0.25, 0.5, contradiction("0.255333 x 0.5"));
  check(info_of(spacing, 0.075F, 0.05F), 0.25, 0.5, contradiction("0.5"));
  check(info_of(spacing, {}, 0.1F), 0.25, 0.5, contradiction("1"));
  check(info_of("0.25\\0.25", 0.0375F, 0.05F), 0.25, 0.5,
        {"PixelSpacing (0028,0030) is 250 micrometres, no size of a slide's pixel: it is passed over"});
}

namespace {

/// What an image of a series says: millimetres of its pixels, rows first, and of the imaged volume.
struct Said {
  std::string spacing;
  std::optional<float> across;
  std::optional<float> down;
};

/// A slide of 150 x 100 pixels with levels of 75 x 50 and 38 x 25.
SlideInfo info_of_levels(const TemporaryFolder& folder, const Said& largest, const Said& second, const Said& third) {
  const Picture picture = picture_for(Codec::jpeg);
  const auto write = [&](const Picture& image, const std::string& number, const Said& said) {
    DicomFile file = make_dicom(image, {.instance = "1.2.3." + number});
    DicomSet measures;
    if (!said.spacing.empty()) measures.text(0x00280030, "DS", said.spacing);
    DicomSet shared;
    shared.items(0x00289110, {measures});
    file.set.items(0x52009229, {shared});
    if (said.across) file.set.real(0x00480001, *said.across);
    if (said.down) file.set.real(0x00480002, *said.down);
    return folder.write("level-" + number + ".dcm", file.encode());
  };
  write(reduced(picture, 2), "2", second);
  write(reduced(picture, 4), "3", third);
  const SlideInfo info = Slide::open(write(picture, "1", largest))->info();
  CHECK(info.levels.size() == 3);
  return info;
}

void check_size(const SlideInfo& info, double size, const Lines& lines) {
  CHECK(info.mpp.value_or(0) == doctest::Approx(size));
  CHECK_FALSE(info.mpp_y);
  CHECK(info.warnings == lines);
}

}  // namespace

TEST_CASE("DICOM: PixelSpacing outside of the functional groups gets a line where nothing else says the size") {
  const TemporaryFolder folder;
  const auto info_of = [&](const std::string& spacing, const std::string& misplaced, bool has_volume) {
    DicomFile file = make_dicom(picture_for(Codec::jpeg));
    DicomSet measures;
    if (!spacing.empty()) measures.text(0x00280030, "DS", spacing);
    DicomSet shared;
    shared.items(0x00289110, {measures});
    file.set.items(0x52009229, {shared}).text(0x00280030, "DS", misplaced);
    if (has_volume) file.set.real(0x00480001, 0.0375F).real(0x00480002, 0.025F);
    return Slide::open(folder.write("slide.dcm", file.encode()))->info();
  };
  const SlideInfo alone = info_of("", "0.0005\\0.0005", false);
  CHECK_FALSE(alone.mpp.has_value());
  CHECK(alone.warnings == Lines{"PixelSpacing (0028,0030) stands outside of the functional groups, where it says "
                                "nothing: it is passed over"});
  CHECK(info_of("", "", false).warnings == Lines{});
  CHECK(info_of("0.00025\\0.00025", "0.0005\\0.0005", false).warnings == Lines{});
  CHECK(info_of("", "0.0005\\0.0005", true).warnings == Lines{});
}

TEST_CASE("DICOM: smaller levels say the pixel size where the largest image doesn't, before the imaged volume") {
  const TemporaryFolder folder;
  const auto info_of = [&](const Said& largest, const std::string& second, const std::string& third) {
    return info_of_levels(folder, largest, {second, {}, {}}, {third, {}, {}});
  };
  const Said none{"", {}, {}}, same{"", 0.075F, 0.05F}, other{"", 0.15F, 0.1F};
  const Lines line = {
      "PixelSpacing (0028,0030) of smaller levels says 0.5 micrometres per pixel, and the imaged volume (0048,0001) 1: "
      "PixelSpacing (0028,0030) of smaller levels counts"};
  check_size(info_of(none, "0.001\\0.001", "0.002\\0.002"), 0.5, {});
  check_size(info_of(same, "0.001\\0.001", "0.002\\0.002"), 0.5, {});
  check_size(info_of(other, "0.001\\0.001", "0.002\\0.002"), 0.5, line);
  check_size(info_of(other, "0.001\\0.001", ""), 0.5, line);
  check_size(info_of(other, "", "0.002\\0.002"), 0.5, line);
  // Less than two of a level's pixels.
  check_size(info_of(other, "0.001\\0.001", "0.00205\\0.00205"), 0.5, line);
  // They aren't of one mind.
  const Lines differs = {"PixelSpacing (0028,0030) of smaller levels differs by their sizes: it is passed over"};
  check_size(info_of(other, "0.001\\0.001", "0.001\\0.001"), 1.0, differs);
  check_size(info_of(none, "0.001\\0.001", "0.002\\0.003"), 0.0, differs);
  check_size(info_of(other, "1\\1", ""), 1.0,
             {"PixelSpacing (0028,0030) of smaller levels is 500 micrometres, no size of a slide's pixel: it is passed "
              "over"});
  check_size(info_of(other, "", ""), 1.0, {});
  const std::string unsound = " isn't two numbers above 0: it is passed over";
  check_size(info_of(other, "0\\0", ""), 1.0, {"PixelSpacing (0028,0030) of a smaller level" + unsound});
  check_size(info_of({"0\\0", {}, {}}, "0.001\\0.001", "0\\0"), 0.5, {"PixelSpacing (0028,0030)" + unsound});
  check_size(info_of({"0.0005\\0.0005", {}, {}}, "0\\0", ""), 0.5, {});
}

TEST_CASE("DICOM: one PixelSpacing in levels of different sizes is no level's, and the imaged volume counts") {
  const TemporaryFolder folder;
  const auto info_of = [&](const Said& largest, const std::string& second, const std::string& third) {
    return info_of_levels(folder, largest, {second, {}, {}}, {third, {}, {}});
  };
  const Lines repeated = {"PixelSpacing (0028,0030) is the same in levels of different sizes: it is passed over"};
  for (const std::string& same : {std::string("1\\1"), std::string("0.0005\\0.0005")}) {
    CAPTURE(same);
    check_size(info_of({same, {}, {}}, same, same), 0.0, repeated);
    check_size(info_of({same, {}, {}}, same, ""), 0.0, repeated);
    check_size(info_of({same, 0.0375F, 0.025F}, same, same), 0.25, repeated);
  }
  // One level that says its own speaks for the largest image.
  const SlideInfo info = info_of({"0.0005\\0.0005", {}, {}}, "0.001\\0.001", "0.0005\\0.0005");
  CHECK(info.mpp.value_or(0) == doctest::Approx(0.5));
}

TEST_CASE("DICOM: levels' imaged volumes may contradict that of the largest image where no PixelSpacing is said") {
  const TemporaryFolder folder;
  const Said largest{"", 0.075F, 0.05F};
  const auto info_of = [&](std::optional<float> across, std::optional<float> down) {
    return info_of_levels(folder, largest, largest, {"", across, down});
  };
  const auto contradiction = [](const std::string& size) {
    return Lines{
        "the imaged volume (0048,0001) of the largest image says 0.5 micrometres per pixel, and that of the image of "
        "38 x 25 pixels gives it " +
        size + ": the imaged volume (0048,0001) of the largest image counts"};
  };
  check_size(info_of(0.075F, 0.05F), 0.5, {});
  check_size(info_of({}, {}), 0.5, {});
  // 1 %, and one of its 25 rows.
  check_size(info_of(0.07575F, 0.052F), 0.5, {});
  check_size(info_of(0.075F, 0.075F), 0.5, contradiction("0.5 x 0.75"));
  check_size(info_of(0.15F, 0.1F), 0.5, contradiction("1"));
  check_size(info_of(0.15F, {}), 0.5, contradiction("1"));
  // Beside PixelSpacing nobody needs them.
  check_size(info_of_levels(folder, {"0.0005\\0.0005", 0.075F, 0.05F}, {"", 0.15F, 0.1F}, {"", 0.15F, 0.1F}), 0.5, {});
}

TEST_CASE("DICOM: levels padded by a tile more than they need are levels by PixelSpacing") {
  // Squares of 24 pixels, each of a grey that says nothing of those beside it.
  const auto squares = [](int across, int down) {
    Picture picture{across, down, 1, {}};
    for (int y = 0; y < down; ++y) {
      for (int x = 0; x < across; ++x) {
        auto value = static_cast<std::uint32_t>(x / 24) * 73856093U ^ static_cast<std::uint32_t>(y / 24) * 19349663U;
        value ^= value >> 13;
        value *= 0x5bd1e995U;
        value ^= value >> 15;
        picture.data.push_back(static_cast<std::uint8_t>(40 + value % 180));
      }
    }
    return picture;
  };
  const auto padded = [](const Picture& from, int across, int down) {
    Picture picture{across, down, 1, {}};
    picture.data.assign(static_cast<std::size_t>(across) * static_cast<std::size_t>(down), 255);
    for (int y = 0; y < from.height; ++y) {
      for (int x = 0; x < from.width; ++x) {
        picture.data[static_cast<std::size_t>(y) * static_cast<std::size_t>(across) + static_cast<std::size_t>(x)] =
            *from.at(x, y);
      }
    }
    return picture;
  };
  const auto sizes_of = [](const SlideInfo& info) {
    std::string text;
    for (const Level& level : info.levels) {
      text += std::to_string(level.width) + "x" + std::to_string(level.height) + " ";
    }
    return text;
  };
  const auto write = [](const TemporaryFolder& folder, int number, const Picture& picture, int tile,
                        const std::string& spacing) {
    return folder.write(std::to_string(number) + ".dcm",
                        make_dicom(picture, {.codec = Codec::jpeg_grey,
                                             .tile = tile,
                                             .instance = "1.2.3." + std::to_string(number + 1),
                                             .spacing = spacing})
                            .encode());
  };
  {
    const TemporaryFolder folder;
    const Picture base = squares(832, 576);
    const auto path = write(folder, 0, base, 64, "0.0005\\0.0005");
    write(folder, 1, padded(reduced(base, 2), 512, 384), 64, "0.001\\0.001");
    const auto slide = Slide::open(path);
    CHECK(sizes_of(slide->info()) == "832x576 416x288 ");
    CHECK(slide->info().warnings ==
          Lines{"level 1 of 512 x 384 pixels is padded to whole tiles: 416 x 288 of them are the slide"});
    REQUIRE(slide->info().levels.size() == 2);
    CHECK(slide->info().levels[1].columns == 7);
    CHECK(slide->info().levels[1].rows == 5);
    CHECK(slide->info().downsample_x(1) == 2.0);
    // Tiles stay at their places.
    const std::vector<std::uint8_t> read = read_level(*slide, 1);
    const Picture expected = reduced(base, 2);
    REQUIRE(read.size() == expected.data.size());
    int apart = 0;
    for (std::size_t i = 0; i < read.size(); ++i) apart += std::abs(read[i] - expected.data[i]);
    CHECK(apart < 10 * static_cast<int>(read.size()));
  }
  // Both fit in one tile.
  const TemporaryFolder folder;
  const Picture base = squares(1024, 1024);
  const auto path = write(folder, 0, base, 256, "0.0005\\0.0005");
  write(folder, 1, reduced(base, 4), 256, "0.002\\0.002");
  write(folder, 2, padded(reduced(base, 8), 256, 256), 256, "0.004\\0.004");
  CHECK(sizes_of(Slide::open(path)->info()) == "1024x1024 256x256 128x128 ");
}

}  // namespace slidestream::test
