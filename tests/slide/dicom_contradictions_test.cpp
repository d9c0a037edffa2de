// What a file says in two places that differ: one of them counts, with a line, or the file is refused.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/dicom_parts.hpp"
#include "slide/dicom_pictures.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

namespace {

const Lines order_counts = {
    "its frames' places in PlanePositionSlideSequence (0048,021A) aren't those of TILED_FULL: TILED_FULL counts"};

std::string out_of_order(int frame, const std::string& said, const std::string& expected) {
  return ": its frames are in another order by PlanePositionSlideSequence (0048,021A) than by TILED_FULL: frame " +
         std::to_string(frame) + " is at " + said + ", expected " + expected;
}

const std::string two_paths = ": the number of optical paths 2 isn't supported; supported: 1";
const std::string two_planes = ": the number of focal planes 2 isn't supported; supported: 1";

DicomSet path_called(const std::string& name) {
  DicomSet path;
  path.text(0x00480106, "SH", name);
  return path;
}

DicomSet frame_at_depth(int column, int row, const std::string& depth) {
  DicomSet position;
  position.number(0x0048021E, "SL", column).number(0x0048021F, "SL", row).text(0x0040074A, "DS", depth);
  DicomSet frame;
  frame.items(0x0048021A, {position});
  return frame;
}

}  // namespace

TEST_CASE("DICOM: places that frames of TILED_FULL say are compared with their order, which counts") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg));
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  for (const bool undefined_lengths : {false, true}) {
    CAPTURE(undefined_lengths);
    file.coding.undefined_lengths = undefined_lengths;
    const auto write = [&](const std::vector<DicomSet>& frames) {
      file.set.items(0x52009230, frames);
      return folder.write("slide.dcm", file.encode());
    };
    const auto check = [&](const std::vector<DicomSet>& frames, const Lines& lines) {
      const fs::path path = write(frames);
      CHECK(Slide::open(path)->info().warnings == lines);
      CHECK(pixels_of(path) == expected);
    };
    check(frames_at(row_by_row), {});
    // Of some frames, and of none.
    check(frames_at({{1, 1}, {65, 1}}), {});
    check(std::vector<DicomSet>(6), {});
    // From 0; in tiles; all the same; rows that aren't counted.
    check(frames_at({{0, 0}, {64, 0}, {128, 0}, {0, 64}, {64, 64}, {128, 64}}), order_counts);
    check(frames_at({{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}, {3, 2}}), order_counts);
    check(frames_at(Places(6, {1, 1})), order_counts);
    check(frames_at({{1, 1}, {65, 1}, {129, 1}, {1, 1}, {65, 1}, {129, 1}}), order_counts);
    // Column by column; to and fro; two exchanged; the same from 0.
    const auto refusal = [&](const Places& places) {
      const fs::path path = write(frames_at(places));
      const std::string error = open_error(path);
      CHECK(error.starts_with(path.string()));
      return error.substr(path.string().size());
    };
    CHECK(refusal({{1, 1}, {1, 65}, {65, 1}, {65, 65}, {129, 1}, {129, 65}}) ==
          out_of_order(2, "column 1, row 65", "column 65, row 1"));
    CHECK(refusal({{1, 1}, {65, 1}, {129, 1}, {129, 65}, {65, 65}, {1, 65}}) ==
          out_of_order(4, "column 129, row 65", "column 1, row 65"));
    CHECK(refusal({{65, 1}, {1, 1}, {129, 1}, {1, 65}, {65, 65}, {129, 65}}) ==
          out_of_order(1, "column 65, row 1", "column 1, row 1"));
    CHECK(refusal({{0, 0}, {0, 64}, {64, 0}, {64, 64}, {128, 0}, {128, 64}}) ==
          out_of_order(1, "column 0, row 0", "column 1, row 1"));
  }
}

TEST_CASE("DICOM: numbers of dimensions are compared with the places of frames, which count") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg), {.sparse = true});
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  const auto longs = [](const std::vector<std::uint32_t>& numbers) {
    Bytes bytes;
    for (const std::uint32_t number : numbers) {
      for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(number >> shift & 255U));
    }
    return bytes;
  };
  const auto dimension = [&](std::uint32_t tag) {
    DicomSet set;
    // The group stands first.
    set.bytes(0x00209165, "AT", longs({tag << 16U | tag >> 16U}));
    return set;
  };
  file.set.items(0x00209222, {dimension(0x0048021E), dimension(0x0048021F)});
  const auto check = [&](const std::vector<std::vector<std::uint32_t>>& indices, const Lines& lines) {
    std::vector<DicomSet> frames = frames_at(row_by_row);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      DicomSet content;
      content.bytes(0x00209157, "UL", longs(indices[i]));
      frames[i].items(0x00209111, {content});
    }
    file.set.items(0x52009230, frames);
    const fs::path path = folder.write("slide.dcm", file.encode());
    CHECK(Slide::open(path)->info().warnings == lines);
    CHECK(pixels_of(path) == expected);
  };
  check({{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}, {3, 2}}, {});
  check({{7, 1}, {5, 1}, {3, 1}, {7, 2}, {5, 2}, {3, 2}}, {});
  check(std::vector<std::vector<std::uint32_t>>(6, {1, 1}), {});
  check({{1, 1}, {}, {3}}, {});
  // Rows where columns should stand.
  check({{1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}, {2, 3}},
        {"its frames' places in PlanePositionSlideSequence (0048,021A) aren't those of their DimensionIndexValues "
         "(0020,9157): PlanePositionSlideSequence counts"});
}

TEST_CASE("DICOM: an ICC profile outside of OpticalPathSequence counts if there is no other, with a line") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg));
  const auto profile = [](std::size_t bytes) {
    Bytes made(bytes);
    made[2] = static_cast<std::byte>(bytes >> 8U);
    made[3] = static_cast<std::byte>(bytes & 255U);
    const std::string signature = "acsp";
    for (std::size_t i = 0; i < signature.size(); ++i) made[36 + i] = static_cast<std::byte>(signature[i]);
    return made;
  };
  const auto open = [&] { return Slide::open(folder.write("slide.dcm", file.encode())); };
  file.set.bytes(0x00282000, "OB", profile(300));
  const auto slide = open();
  CHECK(slide->icc_profile(0).bytes.size() == 300);
  CHECK(
      slide->info().warnings ==
      Lines{
          "its ICC profile (0028,2000) lies outside of OpticalPathSequence (0048,0105), where it belongs: it counts"});
  DicomSet path;
  path.bytes(0x00282000, "OB", profile(200));
  file.set.items(0x00480105, {path});
  CHECK(open()->icc_profile(0).bytes.size() == 200);
  CHECK(open()->info().warnings == Lines{});
}

TEST_CASE("DICOM: places that can't be read, and depths, are no concern of TILED_FULL") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg));
  const auto lines_of = [&](std::vector<DicomSet> frames) {
    file.set.items(0x52009230, std::move(frames));
    return Slide::open(folder.write("slide.dcm", file.encode()))->info().warnings;
  };
  DicomSet position;
  position.bytes(0x0048021E, "SL", {}).bytes(0x0048021F, "SL", {});
  DicomSet empty;
  empty.items(0x0048021A, {position});
  CHECK(lines_of(std::vector<DicomSet>(6, empty)) == Lines{});
  std::vector<DicomSet> frames = frames_at(row_by_row);
  position.number(0x0048021E, "SL", 65).number(0x0048021F, "SL", 1).text(0x0040074A, "DS", "3.5");
  frames[1].items(0x0048021A, {position});
  CHECK(lines_of(frames) == Lines{});
  // A single tile can only be at one place.
  file = make_dicom(cut(picture_for(Codec::jpeg), 0, 0, 64, 64));
  CHECK(lines_of(frames_at({{0, 0}})) == Lines{});
}

TEST_CASE("DICOM: places of TILED_FULL go on in the next part of a concatenation") {
  const TemporaryFolder folder;
  const DicomFile whole = make_dicom(picture_for(Codec::jpeg));
  const TemporaryFolder alone;
  const auto expected = pixels_of(alone.write("slide.dcm", whole.encode()));
  const auto write = [&](const Places& second_places) {
    std::vector<DicomFile> parts = dicom_halves(whole);
    parts[0].set.items(0x52009230, frames_at({{1, 1}, {65, 1}, {129, 1}}));
    parts[1].set.items(0x52009230, frames_at(second_places));
    for (int i = 0; i < 2; ++i) {
      folder.write("part-" + std::to_string(i) + ".dcm", parts[static_cast<std::size_t>(i)].encode());
    }
    return folder.path() / "part-0.dcm";
  };
  const fs::path path = write({{1, 65}, {65, 65}, {129, 65}});
  CHECK(Slide::open(path)->info().warnings == Lines{});
  CHECK(pixels_of(path) == expected);
  CHECK(Slide::open(write({{1, 1}, {65, 1}, {129, 1}}))->info().warnings == order_counts);
  CHECK(open_error(write({{129, 65}, {65, 65}, {1, 65}})) ==
        path.string() + ": part-1.dcm" + out_of_order(1, "column 129, row 65", "column 1, row 65"));
}

TEST_CASE("DICOM: of TILED_FULL's frames the first 4,096 are compared (long)") {
  const TemporaryFolder folder;
  constexpr int count = 4200;
  // Each tile is a pixel.
  DicomFile file = make_dicom(make_picture(count, 1, 1, 1), {.codec = Codec::none, .tile = 1});
  const auto error_with_exchanged = [&](std::size_t frame) {
    Places places;
    for (int i = 0; i < count; ++i) places.emplace_back(i + 1, 1);
    std::swap(places[frame], places[frame + 1]);
    file.set.items(0x52009230, frames_at(places));
    const fs::path path = folder.write("slide.dcm", file.encode());
    const std::string error = open_error(path);
    return error.empty() ? error : error.substr(path.string().size());
  };
  const std::string refused = out_of_order(4095, "column 4096, row 1", "column 4095, row 1");
  CHECK(error_with_exchanged(4094) == refused);
  CHECK(error_with_exchanged(4096).empty());
  // Also where all frames are read, to find the pixel size.
  file.set.remove(0x52009229);
  CHECK(error_with_exchanged(4094) == refused);
  CHECK(error_with_exchanged(4096).empty());
}

TEST_CASE("DICOM: frames of several optical paths are refused, whatever the header says") {
  const TemporaryFolder folder;
  const auto says = [&](bool sparse, const std::vector<std::string>& paths, Places places = row_by_row) {
    DicomFile file = make_dicom(picture_for(Codec::jpeg), {.sparse = sparse});
    while (file.frames.size() < places.size()) file.frames.push_back(file.frames[file.frames.size() % 6]);
    std::vector<DicomSet> frames = frames_at(places);
    for (std::size_t i = 0; i < frames.size(); ++i) frames[i].items(0x00480207, {path_called(paths[i % paths.size()])});
    file.set.text(0x00280008, "IS", std::to_string(frames.size())).items(0x52009230, frames).remove(0x00480105);
    return open_error(folder.write("slide.dcm", file.encode()));
  };
  const std::string refused = (folder.path() / "slide.dcm").string() + two_paths;
  Places twice = row_by_row;
  twice.insert(twice.end(), row_by_row.begin(), row_by_row.end());
  CHECK(says(true, {"1", "1", "1", "1", "1", "1", "2", "2", "2", "2", "2", "2"}, twice) == refused);
  CHECK(says(true, {"1", "2"}) == refused);
  CHECK(says(false, {"1", "2"}) == refused);
  CHECK(says(true, {"1"}, twice).empty());
  CHECK(says(true, {"1", ""}).empty());
  CHECK(says(false, {"1"}).empty());
}

TEST_CASE("DICOM: parts of a concatenation with several optical paths, or several depths at one place, are refused") {
  const TemporaryFolder folder;
  const DicomFile whole = make_dicom(picture_for(Codec::jpeg), {.sparse = true});
  const auto says = [&](const std::string& path, const std::string& depth) {
    for (int i = 0; i < 2; ++i) {
      DicomFile part = dicom_part(whole, i, std::int64_t{6} * i);
      DicomSet shared;
      shared.items(0x00480207, {path_called(i == 0 ? "1" : path)});
      std::vector<DicomSet> frames;
      for (const auto& [column, row] : row_by_row) frames.push_back(frame_at_depth(column, row, i == 0 ? "0" : depth));
      part.set.items(0x52009229, {shared}).items(0x52009230, frames);
      folder.write("part-" + std::to_string(i) + ".dcm", part.encode());
    }
    return open_error(folder.path() / "part-0.dcm");
  };
  const std::string second = (folder.path() / "part-0.dcm").string() + ": part-1.dcm";
  CHECK(says("1", "0.0").empty());
  CHECK(says("2", "0.0") == second + two_paths);
  CHECK(says("1", "0.5") == second + two_planes);
}

TEST_CASE("DICOM: levels of different optical paths are refused, by identifier or wavelength") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg_grey);
  struct Path {
    std::string identifier;
    std::string description;
    float wavelength = 0;
    std::string of_frames;
  };
  const auto says = [&](const Path& largest, const Path& smaller) {
    for (const bool is_largest : {true, false}) {
      const Path& path = is_largest ? largest : smaller;
      DicomFile file = make_dicom(is_largest ? picture : reduced(picture, 2),
                                  {.codec = Codec::jpeg_grey, .instance = is_largest ? "1.2.3.1" : "1.2.3.2"});
      DicomSet item;
      if (!path.identifier.empty()) item.text(0x00480106, "SH", path.identifier);
      if (!path.description.empty()) item.text(0x00480107, "ST", path.description);
      if (path.wavelength > 0) item.real(0x00220055, path.wavelength);
      DicomSet shared;
      if (!path.of_frames.empty()) shared.items(0x00480207, {path_called(path.of_frames)});
      file.set.items(0x00480105, {item}).items(0x52009229, {shared});
      folder.write(is_largest ? "level-0.dcm" : "level-1.dcm", file.encode());
    }
    return open_error(folder.path() / "level-0.dcm");
  };
  const std::string refused = (folder.path() / "level-0.dcm").string() + ": level-1.dcm" + two_paths;
  const Path first{"1", "DAPI", 385.0F, "1"};
  CHECK(says(first, first).empty());
  CHECK(says(first, {"2", "DAPI", 385.0F, "1"}) == refused);
  CHECK(says(first, {"1", "DAPI", 640.0F, "1"}) == refused);
  CHECK(says(first, {"1", "DAPI", 385.0F, "2"}) == refused);
  // What one of them doesn't say is no difference, nor is free text.
  CHECK(says(first, {"1", "Cy5", 385.0F, "1"}).empty());
  CHECK(says(first, {}).empty());
  CHECK(says({}, first).empty());
  CHECK(says(first, {"1", "", 0, ""}).empty());
}

TEST_CASE("DICOM: the depth of a plane may differ from place to place, and two depths at one place are two planes") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg), {.sparse = true});
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  std::vector<DicomSet> frames;
  for (std::size_t i = 0; i < row_by_row.size(); ++i) {
    const auto [column, row] = row_by_row[i];
    frames.push_back(frame_at_depth(column, row, "0.00" + std::to_string(i)));
  }
  const auto write = [&] {
    file.set.text(0x00280008, "IS", std::to_string(frames.size())).items(0x52009230, frames);
    return folder.write("slide.dcm", file.encode());
  };
  const fs::path path = write();
  CHECK(pixels_of(path) == expected);
  CHECK(Slide::open(path)->info().warnings == Lines{});
  // The second frame once more: at its depth, in other digits.
  file.frames.push_back(file.frames[1]);
  frames.push_back(frame_at_depth(65, 1, "0.0010"));
  CHECK(pixels_of(write()) == expected);
  for (const char* other : {"0.002", "0", ""}) {
    CAPTURE(other);
    frames.back() = frame_at_depth(65, 1, other);
    CHECK(open_error(write()) == path.string() + two_planes);
  }
  frames.back() = frame_at_depth(65, 1, "deep");
  CHECK(open_error(write()) == path.string() + ": ZOffsetInSlideCoordinateSystem (0040,074A) isn't a number");
}

TEST_CASE("DICOM: a PresentationLUTShape that contradicts PhotometricInterpretation is a line") {
  const TemporaryFolder folder;
  const auto check = [&](Codec codec, const std::string& says, const std::string& shape, bool contradicts) {
    CAPTURE(says);
    CAPTURE(shape);
    DicomFile file = make_dicom(picture_for(codec), {.codec = codec});
    file.set.text(0x00280004, "CS", says);
    const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
    file.set.text(0x20500020, "CS", shape);
    const fs::path path = folder.write("slide.dcm", file.encode());
    CHECK(pixels_of(path) == expected);
    const std::string line = "its PresentationLUTShape (2050,0020) is " + shape +
                             ", and PhotometricInterpretation is " + says + ": PhotometricInterpretation counts";
    CHECK(Slide::open(path)->info().warnings == (contradicts ? Lines{line} : Lines{}));
  };
  check(Codec::jpeg_grey, "MONOCHROME2", "IDENTITY", false);
  check(Codec::jpeg_grey, "MONOCHROME2", "INVERSE", true);
  // A value of no standard says nothing.
  check(Codec::jpeg_grey, "MONOCHROME2", "LIN OD", false);
  check(Codec::jpeg_grey, "MONOCHROME1", "INVERSE", false);
  check(Codec::jpeg_grey, "MONOCHROME1", "IDENTITY", true);
  check(Codec::none, "RGB", "IDENTITY", false);
  check(Codec::none, "RGB", "INVERSE", true);
  check(Codec::jpeg, "YBR_FULL_422", "INVERSE", true);
}

TEST_CASE("DICOM: values of pixels that aren't those stored are a line") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg_grey), {.codec = Codec::jpeg_grey});
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  const auto warnings_of = [&](const std::string& slope, const std::string& intercept) {
    file.set.text(0x00281052, "DS", intercept).text(0x00281053, "DS", slope);
    const fs::path path = folder.write("slide.dcm", file.encode());
    CHECK(pixels_of(path) == expected);
    return Slide::open(path)->info().warnings;
  };
  const auto line = [](const std::string& slope, const std::string& intercept) {
    return Lines{"its RescaleSlope (0028,1053) is " + slope + ", and RescaleIntercept (0028,1052) " + intercept +
                 "; expected 1 and 0: pixels are read as they are stored"};
  };
  CHECK(warnings_of("1", "0") == Lines{});
  CHECK(warnings_of("1.0", "-0.0") == Lines{});
  CHECK(warnings_of("2", "0") == line("2", "0"));
  CHECK(warnings_of("1.00", "-1024") == line("1", "-1024"));
  // One that can't be read says nothing.
  CHECK(warnings_of("", "much") == Lines{});
  CHECK(warnings_of(std::string(66, '2'), "0") == Lines{});
}

TEST_CASE("DICOM: an element that stands twice is refused, as nobody says which one counts") {
  const TemporaryFolder folder;
  Bytes bytes = make_dicom(picture_for(Codec::jpeg)).encode();
  const Bytes rows = {std::byte{0x28}, std::byte{0}, std::byte{0x10}, std::byte{0}, std::byte{'U'},
                      std::byte{'S'},  std::byte{2}, std::byte{0},    std::byte{64}};
  const auto found = std::search(bytes.begin(), bytes.end(), rows.begin(), rows.end());
  REQUIRE(found != bytes.end());
  const Bytes again(found, found + 10);
  bytes.insert(found, again.begin(), again.end());
  const fs::path path = folder.write("slide.dcm", bytes);
  CHECK(open_error(path) == path.string() + ": has the element (0028,0010) twice");
}

TEST_CASE("DICOM: more bytes of pixels than the frames take are a line") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::none), {.codec = Codec::none});
  const fs::path path = folder.write("slide.dcm", file.encode());
  const auto expected = pixels_of(path);
  CHECK(Slide::open(path)->info().warnings == Lines{});
  file.frames.push_back(Bytes(12));
  folder.write("slide.dcm", file.encode());
  CHECK(pixels_of(path) == expected);
  CHECK(Slide::open(path)->info().warnings ==
        Lines{"its PixelData (7FE0,0010) has 73740 bytes, and its frames take 73728: what lies behind them is passed "
              "over"});
  // The byte that makes a length even.
  const DicomFile odd = make_dicom(make_picture(5, 1, 1, 1), {.codec = Codec::none, .tile = 1});
  CHECK(Slide::open(folder.write("slide.dcm", odd.encode()))->info().warnings == Lines{});
}

TEST_CASE("DICOM: an image that is turned or mirrored by its ImageOrientationSlide is read as stored, with a line") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg));
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  const auto check = [&](const std::string& orientation, const std::string& shows) {
    CAPTURE(orientation);
    file.set.text(0x00480102, "DS", orientation);
    const fs::path path = folder.write("slide.dcm", file.encode());
    CHECK(pixels_of(path) == expected);
    CHECK(Slide::open(path)->info().warnings ==
          (shows.empty() ? Lines{}
                         : Lines{"its ImageOrientationSlide (0048,0102) says that its pixels show the slide " + shows +
                                 ": they are read as they are stored"}));
  };
  check("0\\-1\\0\\-1\\0\\0", "");
  check("0.01\\-0.9999\\0\\-0.9999\\-0.01\\0", "");
  for (const char* turned : {"0\\1\\0\\1\\0\\0", "1\\0\\0\\0\\-1\\0", "-1\\0\\0\\0\\1\\0"}) check(turned, "turned");
  for (const char* mirrored :
       {"0\\-1\\0\\1\\0\\0", "0\\1\\0\\-1\\0\\0", "1\\0\\0\\0\\1\\0", "-1.0\\0\\0\\0\\-1E0\\0"}) {
    check(mirrored, "mirrored");
  }
  // What is no orientation says nothing.
  for (const char* none : {"", "0\\1\\0\\1\\0", "0\\1\\0\\1\\0\\x", "0\\0\\0\\0\\0\\0", "nan\\1\\0\\1\\0\\0"})
    check(none, "");
  check(std::string(2000, '1'), "");
}

TEST_CASE("DICOM: a level that begins elsewhere on the glass than the largest one is read, with a line") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg);
  const auto write = [&](const std::string& name, int factor, const std::string& x, const std::string& y) {
    DicomFile file = make_dicom(factor == 1 ? picture : reduced(picture, factor),
                                {.instance = name, .spacing = factor == 1 ? "0.0005\\0.0005" : "0.001\\0.001"});
    DicomSet origin;
    origin.text(0x0040072A, "DS", x).text(0x0040073A, "DS", y);
    file.set.items(0x00480008, {origin});
    return folder.write(name + ".dcm", file.encode());
  };
  const auto check = [&](const std::string& x, const std::string& y, const std::string& said) {
    CAPTURE(x);
    CAPTURE(y);
    write("1.2.3.2", 2, x, y);
    const SlideInfo info = Slide::open(write("1.2.3.1", 1, "20", "40.5"))->info();
    CHECK(info.levels.size() == 2);
    CHECK(info.warnings ==
          (said.empty() ? Lines{}
                        : Lines{"its image of 75 x 50 pixels begins at " + said +
                                " mm by TotalPixelMatrixOriginSequence (0048,0008), and the largest one at 20, 40.5: "
                                "it is read as if both began at one place"}));
  };
  check("20", "40.50", "");
  // A pixel of the level, and half of one for its centre.
  check("20.0014", "40.4986", "");
  check("20.0016", "40.5", "20.0016, 40.5");
  check("20", "40.4984", "20, 40.4984");
  check("0", "0", "0, 0");
  // What can't be read says nothing.
  for (const std::string& none : {std::string(), std::string("far"), std::string(66, '1')}) {
    check(none, "0", "");
    check("0", none, "");
  }
}

TEST_CASE("DICOM: the ImageOrientationSlide of a label gets no line") {
  const TemporaryFolder folder;
  const auto write = [&](const DicomOptions& options, int factor) {
    DicomFile file = make_dicom(make_stained_picture(width / factor, height / factor, 1), options);
    file.set.text(0x00480102, "DS", "0\\-1\\0\\1\\0\\0");
    return folder.write(options.instance + ".dcm", file.encode());
  };
  const fs::path label = write({.flavour = "LABEL", .instance = "1.2.3.3"}, 2);
  CHECK(open_error(label).find("no image of flavour VOLUME") != std::string::npos);
  const fs::path path = write({.instance = "1.2.3.1"}, 1);
  const SlideInfo info = Slide::open(path)->info();
  CHECK(info.associated == Lines{"label"});
  CHECK(info.warnings == Lines{"its ImageOrientationSlide (0048,0102) says that its pixels show the slide mirrored: "
                               "they are read as they are stored"});
}

}  // namespace slidestream::test
