// What the images beside the slide are in Aperio's files: names, types and places.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/test_images.hpp"
#include "slide/tiff/aperio.hpp"
#include "slide/tiff/pyramid.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Lines = std::vector<std::string>;

const std::string scanner = "Aperio Leica Biosystems GT450 v1.0.1 \r\n";

TestDirectory level(std::uint32_t width, std::uint32_t height, const std::string& text = "") {
  TestDirectory directory = tiled_directory(width, height, 64, 64, 1);
  directory.tiles.assign(std::size_t{(width + 63) / 64} * ((height + 63) / 64), Bytes(64 * 64));
  if (!text.empty()) directory.set_text(270, text);
  return directory;
}

/// An image in strips of this NewSubfileType.
TestDirectory strips(std::uint32_t width, std::uint32_t height, std::uint64_t type, const std::string& text = "") {
  TestDirectory directory = stripped_directory(width, height, height, 1).set(254, long_, {type});
  directory.tiles = {Bytes(std::size_t{width} * height)};
  if (!text.empty()) directory.set_text(270, text);
  return directory;
}

class Fixture {
 public:
  /// What a scanner writes.
  const TestDirectory slide =
      level(1600, 960, scanner + "1600x960 [0,0,1600x960] (64x64) JPEG/YCC Q=91|AppMag = 40|MPP = 0.25");
  const TestDirectory smaller = level(400, 240, scanner + "1600x960 [0,0,1600x960] (64x64) -> 400x240 JPEG/YCC Q=91");
  const TestDirectory thumbnail = strips(128, 77, 0, scanner + "1600x960 -> 128x77 - |AppMag = 40");
  const TestDirectory label = strips(60, 70, 1);
  const TestDirectory macro = strips(128, 50, 9);

  /// Levels' sizes, and behind a bar the associated images' names.
  std::string found(const std::vector<TestDirectory>& directories) {
    TestTiff tiff;
    tiff.directories = directories;
    opened = Slide::open(folder.write("slide.svs", tiff.bytes()));
    std::string text;
    for (const Level& l : opened->info().levels) {
      text += std::to_string(l.width) + "x" + std::to_string(l.height) + " ";
    }
    text += "|";
    for (const std::string& name : opened->info().associated) text += " " + name;
    return text;
  }
  /// Of the slide that was opened last.
  const Lines& warnings() const { return opened->info().warnings; }

  TemporaryFolder folder;
  std::shared_ptr<const Slide> opened;
};

Lines may_be_label(const std::string& image) {
  return {image + " doesn't say what it is: it may be the slide's label"};
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "Aperio's label and macro image have their names by their types, without a description") {
  CHECK(found({slide, thumbnail, smaller, label, macro}) == "1600x960 400x240 | thumbnail label macro");
  CHECK(warnings() == Lines{});
  CHECK(opened->read_associated(0).size == Size{128, 77});
  CHECK(opened->read_associated(1).size == Size{60, 70});
  CHECK(opened->read_associated(2).size == Size{128, 50});
  // Nor does a description without a name say anything.
  for (const std::string& text : {std::string(), scanner, scanner + "|AppMag = 40"}) {
    TestDirectory described = label;
    described.set_text(270, text);
    CHECK(found({slide, thumbnail, smaller, macro, described}) == "1600x960 400x240 | thumbnail macro label");
    CHECK(warnings() == Lines{});
  }
  // Where the thumbnail was removed, the label is the second image.
  CHECK(found({slide, label, macro}) == "1600x960 | label macro");
  CHECK(warnings() == Lines{});
  // A name in the description goes before the type.
  CHECK(found({slide, thumbnail, strips(60, 70, 1, scanner + "macro 60x70")}) == "1600x960 | thumbnail macro");
}

TEST_CASE_FIXTURE(Fixture, "Aperio's thumbnail has its name by its description, wherever it stands") {
  CHECK(found({slide, smaller, thumbnail}) == "1600x960 400x240 | thumbnail");
  CHECK(warnings() == Lines{});
  CHECK(found({slide, label, macro, smaller, thumbnail}) == "1600x960 400x240 | label macro thumbnail");
  CHECK(warnings() == Lines{});
  // Also where it is called reduced, as a label is.
  TestDirectory reduced = thumbnail;
  reduced.set(254, long_, {1});
  CHECK(found({slide, label, smaller, reduced}) == "1600x960 400x240 | label thumbnail");
  CHECK(warnings() == Lines{});
  // Without a description it is the second image, in the slide's shape.
  CHECK(found({slide, strips(128, 77, 0), smaller, label}) == "1600x960 400x240 | thumbnail label");
  CHECK(warnings() == Lines{});
  // Another image's description says nothing of it.
  CHECK(found({slide, strips(120, 72, 0), smaller, strips(128, 78, 0, scanner + "1600x960 -> 128x77 - ")}) ==
        "1600x960 400x240 | thumbnail image 3");
  CHECK(warnings() == may_be_label("image 3"));
}

TEST_CASE_FIXTURE(Fixture,
                  "an image in Aperio's files that may be the label, or isn't, has no name, and a line says so") {
  // A thumbnail without a description behind the levels; a second image of another shape.
  CHECK(found({slide, smaller, strips(128, 77, 0), label}) == "1600x960 400x240 | image 2 label");
  CHECK(warnings() == may_be_label("image 2"));
  CHECK(found({slide, strips(60, 70, 0), smaller}) == "1600x960 400x240 | image 1");
  CHECK(warnings() == may_be_label("image 1"));
  // Two labels.
  CHECK(found({slide, thumbnail, smaller, label, strips(50, 50, 1)}) == "1600x960 400x240 | thumbnail image 3 image 4");
  CHECK(warnings() == Lines{"image 3 and 1 more don't say what they are: one may be the slide's label"});
  CHECK(found({slide, thumbnail, strips(60, 70, 1, scanner + "label 60x70"), label}) ==
        "1600x960 | thumbnail label image 3");
  CHECK(warnings() == may_be_label("image 3"));
  // The second image may be a thumbnail that is called reduced, unless there is another one.
  const TestDirectory reduced = strips(128, 77, 1);
  CHECK(found({slide, reduced, smaller}) == "1600x960 400x240 | image 1");
  CHECK(warnings() == may_be_label("image 1"));
  CHECK(found({slide, reduced, smaller, thumbnail}) == "1600x960 400x240 | label thumbnail");
  CHECK(warnings() == Lines{});
  // Tiles.
  CHECK(found({slide, smaller, level(300, 300).set(254, long_, {1})}) == "1600x960 400x240 | image 2");
  CHECK(warnings() == may_be_label("image 2"));
}

TEST_CASE_FIXTURE(Fixture, "in files of others, types and shapes name no label") {
  const std::vector<TestDirectory> plain = {level(1600, 960), strips(60, 70, 0), level(400, 240), strips(50, 50, 1)};
  CHECK(found(plain) == "1600x960 400x240 | thumbnail image 3");
  CHECK(warnings() == Lines{});
  // Aperio's slides have tiles.
  CHECK(found({strips(1600, 960, 0, scanner), strips(400, 240, 1)}) == "1600x960 | image 1");
  CHECK(warnings() == may_be_label("image 1"));
}

TEST_CASE_FIXTURE(Fixture, "focal planes of Aperio's files are called by their OffsetZ") {
  const auto path_of = [this](const std::vector<std::string>& offsets) {
    TestTiff tiff;
    for (const std::string& offset : offsets) {
      tiff.directories.push_back(level(160, 96, scanner + "160x96 (64x64) JPEG/RGB Q=91|AppMag = 40" + offset));
    }
    return folder.write("slide.svs", tiff.bytes());
  };
  const auto path = path_of({"|OffsetZ = 0", "|OffsetZ = -0.002", "|OffsetZ = 0.002|Date = x"});
  CHECK(open_error(path).ends_with(
      "has 3 channels (0: OffsetZ 0; 1: OffsetZ -0.002; 2: OffsetZ 0.002); set input.channel to choose one, 0 to 2"));
  CHECK(Slide::open(path, {.channel = 1})->info().channels == Lines{"OffsetZ 0", "OffsetZ -0.002", "OffsetZ 0.002"});
  // Unless all say it as a number.
  for (const char* other :
       {"", "|OffsetZ = ", "|OffsetZ = Doe", "|OffsetZ = 1 mm", "|OffsetZ = nan", "|NoOffsetZ = 1"}) {
    CAPTURE(other);
    CHECK(Slide::open(path_of({"|OffsetZ = 0", other}), {.channel = 1})->info().channels == Lines{"0", "1"});
  }
}

TEST_CASE_FIXTURE(Fixture, "smaller levels of Aperio's files belong to the plane with their OffsetZ") {
  const auto filled = [](TestDirectory directory, int value) {
    for (Bytes& tile : directory.tiles) std::ranges::fill(tile, static_cast<std::byte>(value));
    return directory;
  };
  const auto large = [&](const std::string& offset, int value) {
    const std::string text = scanner + "1600x960 [0,0,1600x960] (64x64) JPEG/YCC Q=91|OffsetZ = " + offset;
    return filled(level(1600, 960, text), value);
  };
  const auto small = [&](const std::string& offset, int value) {
    const std::string text = scanner + "1600x960 [0,0,1600x960] (64x64) -> 400x240 JPEG/YCC Q=91";
    return filled(level(400, 240, offset.empty() ? text : text + "|OffsetZ = " + offset), value);
  };
  const auto found_of = [this](const std::vector<TestDirectory>& directories, int channel) {
    TestTiff tiff;
    tiff.directories = directories;
    opened = Slide::open(folder.write("slide.svs", tiff.bytes()), {.channel = channel});
    std::string text;
    for (std::size_t i = 0; i < opened->info().levels.size(); ++i) {
      const Level& of = opened->info().levels[i];
      text += std::to_string(of.width) + "x" + std::to_string(of.height) + ":" +
              std::to_string(read_level(*opened, i).front()) + " ";
    }
    text += "|";
    for (const std::string& name : opened->info().associated) text += " " + name;
    return text;
  };
  const std::vector<TestDirectory> in_order = {
      large("0", 40),      thumbnail,           small("0", 40),     label, macro, large("-0.002", 90),
      small("-0.002", 90), large("0.002", 200), small("0.002", 200)};
  const std::vector<TestDirectory> mixed = {large("0", 40),      thumbnail,           large("-0.002", 90),
                                            large("0.002", 200), small("0.002", 200), label,
                                            small("0", 40),      small("-0.002", 90), macro};
  const Lines values = {"40", "90", "200"};
  for (int channel = 0; channel < 3; ++channel) {
    CAPTURE(channel);
    const std::string& value = values[static_cast<std::size_t>(channel)];
    for (const auto& directories : {in_order, mixed}) {
      CHECK(found_of(directories, channel) == "1600x960:" + value + " 400x240:" + value + " | thumbnail label macro");
      CHECK(warnings() == Lines{});
    }
  }
  // A plane without smaller levels.
  const std::vector<TestDirectory> lacking = {large("0", 40), small("0", 40), large("0.002", 200)};
  CHECK(found_of(lacking, 0) == "1600x960:40 400x240:40 |");
  CHECK(warnings() == Lines{});
  CHECK(found_of(lacking, 1) == "1600x960:200 |");
  CHECK(warnings() == Lines{});
  // Levels that say nothing are in the order of planes.
  const std::vector<TestDirectory> silent = {large("0", 40), small("", 40), large("0.002", 200), small("", 200)};
  CHECK(found_of(silent, 1) == "1600x960:200 400x240:200 |");
  CHECK(warnings() == Lines{});
  // What is of no plane may still be the label.
  const std::vector<TestDirectory> other = {large("0", 40), small("0", 40), large("0.002", 200), small("0.002", 200),
                                            level(300, 300).set(254, long_, {1})};
  CHECK(found_of(other, 0) == "1600x960:40 400x240:40 | image 4");
  CHECK(warnings() == may_be_label("image 4"));
}

TEST_CASE_FIXTURE(Fixture, "a reduced image that has the slide's description alone is scaled by its arrow") {
  const auto info_of = [this](const std::string& text) {
    found({level(200, 120, "Aperio x\r\n" + text + "|AppMag = 20|MPP = 0.4990")});
    return opened->info();
  };
  const Lines line = {"the description says that it was reduced 30 times: pixel size and magnification are scaled"};
  for (const char* text :
       {"6020x3700 [0,100 6000x3600] (256x256) -> 200x120 JPEG/RGB Q=30",
        "6020x3700 [0,100,6000x3600] (256x256) -> 200x121 JPEG/YCC Q=91",
        "6000x3600->200x120 - ;Aperio Image Library v10.0.51\r\n6020x3700 [0,100 6000x3600] (256x256) JPEG/RGB Q=30"}) {
    CAPTURE(text);
    const SlideInfo info = info_of(text);
    CHECK(info.mpp.value_or(0) == doctest::Approx(14.97));
    CHECK(info.magnification.value_or(0) == doctest::Approx(20.0 / 30.0));
    CHECK(info.warnings == line);
  }
  // The slide's own size, 2 % and less, another shape, and nothing of the kind.
  for (const char* text : {"200x120 [0,0 200x120] (64x64) -> 200x120 JPEG/RGB Q=30", "204x122 -> 200x120 JPEG/RGB",
                           "6000x6000 -> 200x120", "6000x3600 [-> 200x120", "-> 200x120"}) {
    CAPTURE(text);
    const SlideInfo info = info_of(text);
    CHECK(info.mpp.value_or(0) == doctest::Approx(0.499));
    CHECK(info.magnification.value_or(0) == doctest::Approx(20.0));
    CHECK(info.warnings.empty());
  }
}

TEST_CASE_FIXTURE(Fixture, "a description of an image of another size gets a line, and counts as it is") {
  const auto warnings_of = [this](const TestDirectory& first, const std::string& text,
                                  const std::string& pairs = "|AppMag = 20|MPP = 0.4990") {
    TestDirectory described = first;
    described.set_text(270, "Aperio x\r\n" + text + pairs);
    found({described});
    return opened->info().warnings;
  };
  const TestDirectory tiled = level(200, 120);
  const auto line = [](const std::string& size) {
    return Lines{"the description is of an image of " + size +
                 " pixels, and the slide has 200 x 120: MPP and AppMag count as they are"};
  };
  // The part of the scan, the whole of it, and what it was made into.
  for (const auto& each :
       {std::pair{"6000x3600 [42,55 400x240] (64x64) JPEG/RGB Q=30;Aperio x\r\n200x120 (64x64)", "400 x 240"},
        {"6000x3600 [0,0,400x240] (64x64) JPEG/YCC Q=91", "400 x 240"},
        {"400x240 (64x64) J2K/KDU Q=70", "400 x 240"},
        {"200x124 (64x64) J2K/KDU Q=70", "200 x 124"},
        {"6000x3600 [0,0 6000x3600] (64x64) -> 400x240 JPEG/RGB", "400 x 240"},
        {"100x60 [0,0 100x60] (64x64)", "100 x 60"}}) {
    CAPTURE(each.first);
    CHECK(warnings_of(tiled, each.first) == line(each.second));
    CHECK(opened->info().mpp.value_or(0) == doctest::Approx(0.499));
    CHECK(opened->info().magnification.value_or(0) == doctest::Approx(20.0));
  }
  CHECK(warnings_of(tiled, "400x240 (64x64)", "|MPP = 0.4990") == line("400 x 240"));
  CHECK(warnings_of(tiled, "400x240 (64x64)", "|AppMag = 20") == line("400 x 240"));
  // The slide's own size, also rounded or padded to tiles, and no size.
  for (const char* text :
       {"6000x3600 [42,55 200x120] (64x64) JPEG/RGB Q=30;Aperio x\r\n6000x3600 (64x64)", "200x120 (64x64) J2K/KDU Q=70",
        "202x122 (64x64)", "203x118 (64x64)", "256x128 (64x64)", "6000x3600 [0,0 6000x3600] (64x64) -> 256x128 JPEG",
        "400 (64x64)", "0x0 (64x64)", "no size", "6000x3600 [0,0] (64x64)"}) {
    CAPTURE(text);
    CHECK(warnings_of(tiled, text) == Lines{});
  }
  CHECK(warnings_of(level(256, 128), "200x120 (64x64)") == Lines{});
  CHECK(warnings_of(tiled, "400x240 (64x64)", "|User = x") == Lines{});
  // Strips are padded to nothing.
  CHECK(warnings_of(strips(200, 120, 0), "100x60 [0,0 100x60]") == line("100 x 60"));
}

TEST_CASE_FIXTURE(Fixture, "names and types of Aperio's images that contradict each other get a line") {
  CHECK(found({slide, smaller, strips(60, 70, 9, scanner + "label 60x70")}) == "1600x960 400x240 | label");
  CHECK(warnings() ==
        Lines{"image 2 is called label by its description, and macro by NewSubfileType 9: the description counts"});
  CHECK(found({slide, smaller, strips(60, 70, 1, scanner + "label 60x70"),
               strips(128, 50, 9, scanner + "macro 128x50")}) == "1600x960 400x240 | label macro");
  CHECK(warnings() == Lines{});
  TestDirectory other = smaller;
  other.set(254, long_, {9});
  CHECK(found({slide, other}) == "1600x960 | macro");
  CHECK(warnings() ==
        Lines{"image 1 has tiles and the size of a level, and NewSubfileType 9 calls it macro: it is no level"});
  CHECK(found({slide, level(400, 240, scanner + "label 400x240")}) == "1600x960 | label");
  CHECK(warnings() ==
        Lines{"image 1 has tiles and the size of a level, and its description calls it label: it is no level"});
}

TEST_CASE_FIXTURE(Fixture, "MPP and AppMag of a smaller level that contradict the largest image's get a line") {
  const auto lines = [this](const std::string& pairs) {
    const std::string text = scanner + "1600x960 [0,0,1600x960] (64x64) -> 400x240 JPEG/YCC Q=91" + pairs;
    CHECK(found({slide, level(400, 240, text)}) == "1600x960 400x240 |");
    CHECK(opened->info().mpp.value_or(0) == doctest::Approx(0.25));
    CHECK(opened->info().magnification.value_or(0) == doctest::Approx(40.0));
    return warnings();
  };
  const auto line = [](const std::string& key, const std::string& said, const std::string& own) {
    return key + " of the description is " + said + ", and that of the image of 400 x 240 pixels is " + own +
           ", which isn't that by its size: the largest image's counts";
  };
  // None, the largest image's once more, and its own.
  for (const char* sound : {"", "|AppMag = 40|MPP = 0.25", "|AppMag = 10|MPP = 1.0", "|MPP = x"}) {
    CAPTURE(sound);
    CHECK(lines(sound) == Lines{});
  }
  CHECK(lines("|AppMag = 10|MPP = 0.5") == Lines{line("MPP", "0.25", "0.5")});
  CHECK(lines("|AppMag = 20|MPP = 0.25") == Lines{line("AppMag", "40", "20")});
  CHECK(lines("|AppMag = 80|MPP = 2") == Lines{line("MPP", "0.25", "2"), line("AppMag", "40", "80")});
}

TEST_CASE("a thumbnail's description has the slide's size and its own") {
  CHECK(
      size_of_thumbnail("Aperio Image Library v11.2.1 \r\n46000x32914 -> 1024x732 - ;Aperio Image Library v10.0.51\r\n"
                        "46920x33014 [0,100 46000x32914] (256x256) JPEG/RGB Q=30|AppMag = 20") == ImageSize{1024, 732});
  CHECK(size_of_thumbnail("Aperio\n220x296->74x99|MPP = 1") == ImageSize{74, 99});
  for (const char* text :
       {"", "Aperio", "Aperio\n", "Aperio\nlabel 387x463", "Aperio\n100x60", "Aperio\n100x60 -> ", "Aperio\n-> 10x6",
        "Aperio\n100x -> 10x6", "Aperio\n100 -> 10x6", "Aperio\n100x60 -> 10", "Aperio 100x60 -> 10x6",
        "Aperio\n\n100x60 -> 10x6", "Aperio\n|100x60 -> 10x6", "Aperio\n100x60 -> 10x99999999999999999999",
        "Scanner\n100x60 -> 10x6", "Aperio\r\n46920x33014 [0,100 46000x32914] (256x256) -> 11500x8228 JPEG/RGB Q=30"}) {
    CAPTURE(text);
    CHECK_FALSE(size_of_thumbnail(text).has_value());
  }
}

TEST_CASE("an image has the shape of a larger one but for 2 pixels or 2 %") {
  CHECK(has_shape_of({46000, 32914}, {1024, 732}));
  CHECK(has_shape_of({46000, 32914}, {1024, 746}));
  CHECK(has_shape_of({9000, 100}, {141, 3}));
  CHECK_FALSE(has_shape_of({46000, 32914}, {1024, 760}));
  CHECK_FALSE(has_shape_of({46000, 32914}, {387, 463}));
  CHECK_FALSE(has_shape_of({46000, 32914}, {46000, 32914}));
  CHECK_FALSE(has_shape_of({46000, 32914}, {0, 0}));
}
