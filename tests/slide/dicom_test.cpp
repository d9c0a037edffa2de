#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/dicom_pictures.hpp"
#include "slide/formats.hpp"
#include "slide/test_images.hpp"
#include "support/temporary_folder.hpp"
#include "support/wide.hpp"

namespace slidestream::test {

namespace {

/// The error without the path.
std::string refusal(const fs::path& path, const std::string& text) {
  const std::string prefix = path.string() + ": ";
  CHECK_MESSAGE(text.starts_with(prefix), text);
  CHECK(text.find('\n') == std::string::npos);
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::string what_opening_says(const TemporaryFolder& folder, const DicomFile& file) {
  const fs::path path = folder.write("slide.dcm", file.encode());
  return refusal(path, open_error(path));
}

}  // namespace

TEST_CASE("DICOM: pixels are those of the same tiles in a TIFF, whatever says where they are") {
  const TemporaryFolder folder;
  for (const Codec codec : {Codec::jpeg, Codec::jpeg_rgb, Codec::jpeg_grey, Codec::jpeg2000, Codec::none}) {
    CAPTURE(static_cast<int>(codec));
    const Picture picture = picture_for(codec);
    const auto expected = pixels_of(folder.write("same.tif", make_same_tiff(picture, {.codec = codec}).bytes()));
    for (const bool sparse : {false, true}) {
      CAPTURE(sparse);
      DicomFile file = make_dicom(picture, {.codec = codec, .sparse = sparse});
      for (const Table table : {Table::none, Table::basic, Table::extended}) {
        for (const bool undefined_lengths : {false, true}) {
          CAPTURE(static_cast<int>(table));
          CAPTURE(undefined_lengths);
          file.table = table;
          file.coding.undefined_lengths = undefined_lengths;
          CHECK(pixels_of(folder.write("slide.dcm", file.encode())) == expected);
        }
      }
    }
  }
}

TEST_CASE("DICOM: lengths of the extended table that count the items' headers reach no further than the next frame") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg));
  file.table = Table::extended;
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  for (const std::uint64_t longer : {std::uint64_t{8}, std::uint64_t{9}, std::uint64_t{1} << 40}) {
    file.longer = longer;
    CHECK(pixels_of(folder.write("slide.dcm", file.encode())) == expected);
  }
}

TEST_CASE("DICOM: implicit value representations are read as explicit ones") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::none);
  DicomFile file = make_dicom(picture, {.codec = Codec::none, .sparse = true});
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  file.syntax = "1.2.840.10008.1.2";
  file.coding.implicit = true;
  for (const bool undefined_lengths : {false, true}) {
    file.coding.undefined_lengths = undefined_lengths;
    CHECK(pixels_of(folder.write("slide.dcm", file.encode())) == expected);
  }
}

TEST_CASE("DICOM: a sequence whose value representation its writer didn't know is implicit inside") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::none), {.codec = Codec::none, .sparse = true});
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  std::vector<DicomSet> frames;
  for (int y = 0; y < height; y += 64) {
    for (int x = 0; x < width; x += 64) frames.push_back(dicom_frame_at(x + 1, y + 1));
  }
  DicomSet alone;
  alone.items(0x52009230, frames);
  const Bytes implicit = alone.encode({.implicit = true});
  // Without its tag and length.
  file.set.bytes(0x52009230, "UN", Bytes(implicit.begin() + 8, implicit.end()));
  CHECK(pixels_of(folder.write("slide.dcm", file.encode())) == expected);
}

TEST_CASE("DICOM: a frame in several items is one tile") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg);
  DicomFile file = make_dicom(picture);
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  file.fragments = 3;
  CHECK(pixels_of(folder.write("slide.dcm", file.encode())) == expected);
  // Without a table nobody can tell which items are whose, unless there is one frame.
  file.table = Table::none;
  CHECK(what_opening_says(folder, file) ==
        "PixelData (7FE0,0010) has more items than the 6 frames, and no offset table");
  const Picture small = cut(picture, 0, 0, 64, 64);
  DicomFile one = make_dicom(small);
  const auto expected_one = pixels_of(folder.write("slide.dcm", one.encode()));
  one.fragments = 5;
  one.table = Table::none;
  CHECK(pixels_of(folder.write("slide.dcm", one.encode())) == expected_one);
}

TEST_CASE("DICOM: what the slide is") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg));
  const auto slide = Slide::open(folder.write("slide.dcm", file.encode()));
  const SlideInfo& info = slide->info();
  CHECK(info.format == "dicom");
  CHECK(info.container == "DICOM");
  REQUIRE(info.levels.size() == 1);
  CHECK(info.levels[0].width == width);
  CHECK(info.levels[0].columns == 3);
  CHECK(info.levels[0].rows == 2);
  CHECK(info.levels[0].codec == slidestream::Codec::jpeg);
  CHECK(info.levels[0].colour == Colour::ycbcr);
  CHECK(info.mpp.value_or(0) == doctest::Approx(0.5));
  CHECK_FALSE(info.mpp_y);
  CHECK(info.magnification.value_or(0) == 20.0);
  CHECK(info.warnings.empty());
  // Rows first, then columns.
  DicomSet measures;
  measures.text(0x00280030, "DS", "0.0005\\0.00025");
  DicomSet shared;
  shared.items(0x00289110, {measures});
  file.set.items(0x52009229, {shared});
  const auto oblong = Slide::open(folder.write("slide.dcm", file.encode()));
  CHECK(oblong->info().mpp.value_or(0) == doctest::Approx(0.25));
  CHECK(oblong->info().mpp_y.value_or(0) == doctest::Approx(0.5));
}

TEST_CASE("DICOM: a series is one slide, whichever of its files is named") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg);
  const Picture half = reduced(picture, 2);
  const Picture other = picture_for(Codec::jpeg, 9);
  const auto write = [&](const char* name, const Picture& of, const DicomOptions& options) {
    return folder.write(name, make_dicom(of, options).encode());
  };
  const fs::path large = write("b.dcm", picture, {.instance = "1.2.3.1"});
  const fs::path small = write("a.dcm", half, {.instance = "1.2.3.2"});
  write("c.dcm", cut(picture, 0, 0, 64, 64), {.flavour = "LABEL", .instance = "1.2.3.3"});
  write("d", cut(picture, 0, 0, 128, 64), {.flavour = "OVERVIEW", .instance = "1.2.3.4"});
  write("e.dcm", cut(picture, 0, 0, 64, 50), {.flavour = "THUMBNAIL", .instance = "1.2.3.5"});
  write("f.dcm", other, {.flavour = "LOCALIZER", .instance = "1.2.3.6"});
  write("copy.dcm", half, {.instance = "1.2.3.2"});
  const fs::path another = write("other.dcm", other, {.series = "1.2.4", .instance = "1.2.4.1"});
  folder.write("notes.txt", Bytes(400, std::byte{'x'}));
  folder.write("broken.dcm", Bytes(400, std::byte{'x'}));
  for (const fs::path& named : {large, small}) {
    const auto slide = Slide::open(named);
    REQUIRE(slide->info().levels.size() == 2);
    CHECK(slide->info().levels[0].width == width);
    CHECK(slide->info().levels[1].width == width / 2);
    CHECK(slide->info().downsample_x(1) == 2.0);
    CHECK(slide->info().associated == std::vector<std::string>{"label", "macro", "thumbnail"});
    CHECK(slide->read_associated(0).size == Size{64, 64});
    CHECK(slide->read_associated(1).size == Size{128, 64});
    CHECK(slide->read_associated(2).pixels.size() == std::size_t{3} * 64 * 50);
    CHECK(files_of_slide(named) == std::vector<fs::path>{large, small, folder.path() / "copy.dcm"});
  }
  // Each file's pixels, which no reader takes from another file.
  for (const std::string flavour : {"LOCALIZER", "OVERVIEW"}) {
    const TemporaryFolder larger;
    const fs::path named =
        larger.write("0.dcm", make_dicom(picture, {.flavour = flavour, .instance = "1.2.3.1"}).encode());
    larger.write("1.dcm", make_dicom(half, {.instance = "1.2.3.2"}).encode());
    CHECK(Slide::open(named)->info().warnings ==
          std::vector<std::string>{"0.dcm: an image of " + std::to_string(width) + " x " + std::to_string(height) +
                                   " pixels, larger than the slide: it is no level, as its flavour isn't VOLUME "
                                   "(ImageType (0008,0008))"});
  }
  const auto slide = Slide::open(small);
  for (const std::string& line : slide->info().warnings) CHECK(line.find("larger") == std::string::npos);
  const TemporaryFolder alone;
  CHECK(read_level_rgb(*slide, 0) == read_level_rgb(*Slide::open(alone.write("a.dcm", make_dicom(picture).encode()))));
  CHECK(read_level_rgb(*slide, 1) == read_level_rgb(*Slide::open(alone.write("a.dcm", make_dicom(half).encode()))));
  CHECK(Slide::open(another)->info().levels.size() == 1);
  CHECK(files_of_slide(another) == std::vector<fs::path>{another});
  CHECK(open_error(folder.path()) == folder.path().string() + ": a folder with 3 slides; name a file of one of them");
  fs::remove(folder.path() / "broken.dcm");
  fs::remove(another);
  CHECK(Slide::open(folder.path())->info().path == large);
}

TEST_CASE("DICOM: parts of a concatenation are one level, and all must be there") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg);
  const DicomFile whole = make_dicom(picture);
  const TemporaryFolder alone;
  const auto expected = pixels_of(alone.write("slide.dcm", whole.encode()));
  const std::vector<std::pair<std::size_t, std::size_t>> cuts = {{0, 1}, {1, 4}, {4, 6}};
  std::vector<DicomFile> parts;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    DicomFile part = whole;
    const auto [first, end] = cuts[i];
    part.frames.assign(whole.frames.begin() + static_cast<std::ptrdiff_t>(first),
                       whole.frames.begin() + static_cast<std::ptrdiff_t>(end));
    part.set.text(0x00080018, "UI", "1.2.3.1." + std::to_string(i))
        .text(0x00209161, "UI", "1.2.3.9")
        .number(0x00209162, "US", static_cast<std::int64_t>(i) + 1)
        .number(0x00209163, "US", 3)
        .number(0x00209228, "UL", static_cast<std::int64_t>(first))
        .text(0x00280008, "IS", std::to_string(end - first));
    parts.push_back(part);
  }
  // By name they are the other way round.
  const std::vector<std::string> names = {"c.dcm", "b.dcm", "a.dcm"};
  for (std::size_t i = 0; i < parts.size(); ++i) folder.write(names[i], parts[i].encode());
  const fs::path first = folder.path() / "c.dcm";
  CHECK(pixels_of(first) == expected);
  CHECK(files_of_slide(folder.path() / "a.dcm").front() == first);
  fs::remove(folder.path() / "b.dcm");
  CHECK(open_error(first) == first.string() + ": a.dcm: part 2 of its concatenation is missing");
  folder.write("b.dcm", parts[1].encode());
  fs::remove(folder.path() / "a.dcm");
  CHECK(open_error(first) == first.string() + ": b.dcm: its concatenation has 3 parts, and 2 are there");
}

TEST_CASE("DICOM: frames that are missing are white, and the last one at a place is shown") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::none);
  DicomFile file = make_dicom(picture, {.codec = Codec::none, .sparse = true});
  // Tile 1 twice, tile 4 not at all.
  const Bytes white(std::size_t{3} * 64 * 64, std::byte{255});
  std::vector<DicomSet> places = {dicom_frame_at(1, 1),  dicom_frame_at(65, 1), dicom_frame_at(129, 1),
                                  dicom_frame_at(1, 65), dicom_frame_at(65, 1), dicom_frame_at(129, 65)};
  const std::vector<Bytes> frames = file.frames;
  file.frames[4] = frames[1];
  file.frames[1] = frames[0];
  file.set.items(0x52009230, places);
  const auto slide = Slide::open(folder.write("slide.dcm", file.encode()));
  CHECK(slide->tile(0, 4).length == 0);
  TestTiff same = make_same_tiff(picture, {.codec = Codec::none});
  same.directories[0].tiles[4] = white;
  CHECK(read_level_rgb(*slide) == read_level_rgb(*Slide::open(folder.write("same.tif", same.bytes()))));
}

TEST_CASE("DICOM: a table that is wrong makes tiles bad, and no others") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg);
  DicomFile file = make_dicom(picture);
  const auto tile_error = [&](std::int64_t tile) {
    const fs::path path = folder.write("slide.dcm", file.encode());
    const auto slide = Slide::open(path);
    std::vector<std::uint8_t> pixels(64 * 36);
    const HostPixels to{pixels.data(), 22, 22, 36, luminance_format};
    try {
      read_luminance(*slide, 0, tile % 3 * 64, tile / 3 * 64, to);
    } catch (const SlideError& error) {
      return refusal(path, error.what());
    }
    return std::string();
  };
  SUBCASE("the extended table leads outside of the file") {
    file.table = Table::extended;
    file.moved = {0, 0, 0, 0, 0, std::int64_t{1} << 60};
    CHECK(tile_error(5) == "level 0 tile 5 (column 2, row 1): lies outside the file");
  }
  SUBCASE("the extended table leads between items") {
    file.table = Table::extended;
    file.moved = {0, 2, 0};
    CHECK(tile_error(1) == "level 0 tile 1 (column 1, row 0): no item begins where the offset table says");
  }
  SUBCASE("the basic table leads between items") {
    file.moved = {0, 2, 0};
    CHECK(tile_error(1) == "level 0 tile 1 (column 1, row 0): no item begins where the offset table says");
    // What lies before ends elsewhere, too.
    CHECK(tile_error(0) == "level 0 tile 0 (column 0, row 0): no item begins where the offset table says");
    CHECK(tile_error(2).empty());
  }
  CHECK(tile_error(4).empty());
}

TEST_CASE("DICOM: what is wrong is said in one line, with the element") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg);
  const DicomFile sound = make_dicom(picture);
  const auto says = [&](const std::function<void(DicomFile&)>& change, bool sparse = false) {
    DicomFile file = make_dicom(picture, {.sparse = sparse});
    change(file);
    return what_opening_says(folder, file);
  };
  using F = DicomFile;
  const std::string only = " isn't supported; supported: ";
  CHECK(says([](F& f) { f.set.text(0x00080016, "UI", "1.2.840.10008.5.1.4.1.1.2"); }) ==
        "SOPClassUID (0008,0016) isn't that of whole-slide images");
  CHECK(says([](F& f) { f.set.remove(0x0020000E); }) == "SeriesInstanceUID (0020,000E) is missing");
  CHECK(says([](F& f) { f.set.remove(0x00080018); }) == "SOPInstanceUID (0008,0018) is missing");
  CHECK(says([](F& f) { f.set.text(0x00080008, "CS", "ORIGINAL\\PRIMARY\\LABEL\\NONE"); }) ==
        "its series has no image of flavour VOLUME (ImageType (0008,0008))");
  CHECK(says([](F& f) { f.set.remove(0x00080008); }) ==
        "its series has no image of flavour VOLUME (ImageType (0008,0008))");
  CHECK(says([&](F& f) { f.set.number(0x00280100, "US", 16); }) == "BitsAllocated (0028,0100) 16" + only + "8");
  CHECK(says([&](F& f) { f.set.number(0x00280101, "US", 12); }) == "BitsStored (0028,0101) 12" + only + "8");
  CHECK(says([&](F& f) { f.set.number(0x00280102, "US", 11); }) == "HighBit (0028,0102) 11" + only + "7");
  CHECK(says([&](F& f) { f.set.number(0x00280102, "US", 0); }) == "HighBit (0028,0102) 0" + only + "7");
  CHECK(says([&](F& f) { f.set.number(0x00280103, "US", 1); }) == "PixelRepresentation (0028,0103) 1" + only + "0");
  CHECK(says([&](F& f) { f.set.number(0x00480303, "UL", 3); }) == "the number of focal planes 3" + only + "1");
  CHECK(says([&](F& f) { f.set.items(0x00480105, {{}, {}}); }) == "the number of optical paths 2" + only + "1");
  CHECK(says([&](F& f) { f.set.remove(0x00480105).number(0x00480302, "UL", 2); }) ==
        "the number of optical paths 2" + only + "1");
  CHECK(says([&](F& f) { f.set.text(0x00280004, "CS", "PALETTE COLOR"); }) ==
        "PhotometricInterpretation (0028,0004) PALETTE COLOR with 3 samples of jpeg isn't supported");
  CHECK(says([&](F& f) { f.set.number(0x00280002, "US", 4); }) ==
        "PhotometricInterpretation (0028,0004) YBR_FULL_422 with 4 samples of jpeg isn't supported");
  CHECK(says([](F& f) { f.set.remove(0x00480006); }) == "TotalPixelMatrixColumns (0048,0006) is missing, or 0");
  CHECK(says([](F& f) { f.set.number(0x00480007, "UL", 0); }) == "TotalPixelMatrixRows (0048,0007) is missing, or 0");
  CHECK(says([](F& f) { f.set.number(0x00280010, "US", 0); }) == "Rows (0028,0010) is missing, or 0");
  CHECK(says([](F& f) { f.set.text(0x00280008, "IS", "0"); }) == "NumberOfFrames (0028,0008) is missing, or 0");
  CHECK(says([](F& f) { f.set.text(0x00280008, "IS", "six"); }) == "NumberOfFrames (0028,0008) isn't an integer");
  CHECK(says([](F& f) {
          f.set.text(0x00280008, "IS", "5");
          f.frames.pop_back();
        }) == "NumberOfFrames (0028,0008) is 5 in all parts, and 3 x 2 tiles are TILED_FULL");
  CHECK(says([](F& f) { f.set.text(0x00280008, "IS", "7"); }) ==
        "NumberOfFrames (0028,0008) is 7, and the image has 3 x 2 tiles");
  CHECK(says([](F& f) { f.set.number(0x00480006, "UL", 0xFFFFFFFF).number(0x00480007, "UL", 0xFFFFFFFF); }) ==
        "TotalPixelMatrixColumns x TotalPixelMatrixRows 4294967295 x 4294967295 is more than input.max_pixels "
        "68719476736");
  CHECK(says([](F& f) {
          f.set.number(0x00480006, "UL", 1 << 24).number(0x00480007, "UL", 1 << 12);
        }).starts_with("its levels have 16777216 tiles or more, which is above input.max_tiles"));
  CHECK(says([](F& f) { f.syntax = "1.2.840.10008.1.2.4.57"; }) ==
        "TransferSyntaxUID (0002,0010) 1.2.840.10008.1.2.4.57 isn't supported; supported: uncompressed, JPEG baseline, "
        "JPEG 2000, HTJ2K, JPEG-LS");
  CHECK(says([](F& f) { f.syntax = "1.2.840.10008.1.2.2"; }) ==
        "TransferSyntaxUID (0002,0010) 1.2.840.10008.1.2.2 isn't supported");
  CHECK(says([](F& f) { f.frames.clear(); }) ==
        "PixelData (7FE0,0010) has 0 entries, and NumberOfFrames (0028,0008) is 6");
  CHECK(says([](F& f) {
          f.frames.pop_back();
          f.table = Table::none;
        }) == "PixelData (7FE0,0010) has 5 entries, and NumberOfFrames (0028,0008) is 6");
  CHECK(says([](F& f) {
          f.frames.pop_back();
          f.table = Table::extended;
        }) == "ExtendedOffsetTable (7FE0,0001) has 5 entries, and NumberOfFrames (0028,0008) is 6");
  CHECK(says([](F& f) {
          f.moved = {0, 1 << 20, 0};
        }) == "entry 3 of the basic offset table isn't behind the one before it");
  CHECK(says([](F& f) {
          f.moved = {0, 0, 1 << 20, 0};
          f.table = Table::extended;
        }) == "entry 4 of ExtendedOffsetTable (7FE0,0001) isn't behind the one before it");
  CHECK(says([](F& f) { f.set.items(0x52009230, {dicom_frame_at(1, 1)}); }, true) ==
        "PerFrameFunctionalGroupsSequence (5200,9230) describes 1 frames, and NumberOfFrames (0028,0008) is 6");
  CHECK(says(
            [](F& f) {
              std::vector<DicomSet> frames(6, dicom_frame_at(1, 1));
              frames[4] = dicom_frame_at(33, 1);
              f.set.items(0x52009230, frames);
            },
            true) == "frame 5 is at column 33, row 1, which isn't on the grid of tiles");
  CHECK(says([](F& f) { f.set.items(0x52009230, std::vector<DicomSet>(6)); }, true) ==
        "frame 1 has no PlanePositionSlideSequence (0048,021A)");
  CHECK(says([](F& f) {
          DicomSet measures;
          measures.text(0x00280030, "DS", "0.0005");
          DicomSet shared;
          shared.items(0x00289110, {measures});
          f.set.items(0x52009229, {shared});
        }) == "PixelSpacing (0028,0030) has no two values");
  CHECK(says([](F& f) {
          DicomSet deep;
          for (int i = 0; i < 100; ++i) {
            DicomSet around;
            around.items(0x00091010, {deep});
            deep = around;
          }
          f.set.items(0x00091010, {deep});
          f.coding.undefined_lengths = true;
        }) == "its sequences are nested more than 64 deep");
}

TEST_CASE("DICOM: an icon's own pixels aren't the image's") {
  const TemporaryFolder folder;
  const Picture picture = picture_for(Codec::jpeg);
  DicomFile file = make_dicom(picture);
  const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
  DicomSet icon;
  icon.number(0x00280010, "US", 8).bytes(dicom_pixels, "OB", Bytes(64));
  file.set.items(0x00880200, {icon});
  for (const bool undefined_lengths : {false, true}) {
    file.coding.undefined_lengths = undefined_lengths;
    CHECK(pixels_of(folder.write("slide.dcm", file.encode())) == expected);
  }
  // Encapsulated: an item without bytes, one with, and the end.
  icon.encapsulated(dicom_pixels, {Bytes(), Bytes(10, std::byte{7})});
  file.set.items(0x00880200, {icon});
  CHECK(pixels_of(folder.write("slide.dcm", file.encode())) == expected);
}

TEST_CASE("DICOM: a series has so many files") {
  const TemporaryFolder folder;
  const Bytes bytes = make_dicom(cut(picture_for(Codec::jpeg), 0, 0, 16, 16), {.tile = 16}).encode();
  for (int i = 0; i < 256; ++i) folder.write("copy-" + std::to_string(i) + ".dcm", bytes);
  CHECK(open_error(folder.path() / "copy-7.dcm").empty());
  const fs::path path = folder.write("one-more.dcm", bytes);
  CHECK(refusal(path, open_error(path)) == "its series has 257 files; supported are up to 256");
}

TEST_CASE("DICOM: two images of one size are refused") {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a.dcm", make_dicom(picture_for(Codec::jpeg)).encode());
  folder.write("b.dcm", make_dicom(picture_for(Codec::jpeg, 2), {.instance = "1.2.3.2"}).encode());
  CHECK(open_error(path) == path.string() + ": its series has two images of 150 x 100 pixels");
}

TEST_CASE("DICOM: a label that is damaged is a warning, and the slide is read") {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a.dcm", make_dicom(picture_for(Codec::jpeg)).encode());
  DicomFile label = make_dicom(picture_for(Codec::jpeg), {.flavour = "LABEL", .instance = "1.2.3.2"});
  label.set.number(0x00280100, "US", 16);
  folder.write("b.dcm", label.encode());
  const auto slide = Slide::open(path);
  CHECK(slide->info().associated.empty());
  CHECK(slide->info().warnings == std::vector<std::string>{"the image label can't be read: b.dcm: BitsAllocated "
                                                           "(0028,0100) 16 isn't supported; supported: 8"});
}

TEST_CASE("DICOM: many private elements and values of patients leave no trace") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(picture_for(Codec::jpeg));
  file.set.text(0x00100010, "PN", "DOE^JANE").text(0x00100020, "LO", "PATIENT-7").text(0x00080050, "SH", "ACC-7");
  file.set.text(0x00080020, "DA", "19500101").text(0x00400512, "LO", "SPECIMEN-7").text(0x00081030, "LO", "STUDY-7");
  for (std::uint32_t i = 0; i < 50'000; ++i)
    file.set.text(0x00090010 + i / 0xF000 * 0x20000 + i % 0xF000, "LO", "SECRET-7");
  const auto slide = Slide::open(folder.write("slide.dcm", file.encode()));
  const SlideInfo& info = slide->info();
  std::string all = info.format + info.container;
  for (const auto& [key, value] : info.properties) all += key + value;
  for (const std::string& text : info.associated) all += text;
  for (const std::string& text : info.warnings) all += text;
  for (const char* secret : {"DOE", "JANE", "PATIENT", "ACC-7", "1950", "SPECIMEN", "STUDY", "SECRET"}) {
    CHECK(all.find(secret) == std::string::npos);
  }
}

TEST_CASE("DICOM: a file cut at any byte is refused in one line, or its tiles are what they were, or bad") {
  const TemporaryFolder folder;
  const Picture picture = cut(picture_for(Codec::jpeg), 0, 0, 32, 16);
  for (const Table table : {Table::none, Table::basic, Table::extended}) {
    DicomFile file = make_dicom(picture, {.tile = 16, .sparse = true});
    file.table = table;
    const Bytes whole = file.encode();
    fs::remove(folder.path() / "cut.dcm");
    const auto expected = read_level_rgb(*Slide::open(folder.write("whole.dcm", whole)));
    fs::rename(folder.path() / "whole.dcm", folder.path() / "cut.dcm");
    int opened = 0;
    // Everywhere near the end, where what is cut off may be no more than a delimiter.
    const auto step = static_cast<std::size_t>(wide_or_few(1, 3));
    for (std::size_t length = 0; length < whole.size(); length += length + 100 < whole.size() ? step : 1) {
      // A file that is cut to nothing and written again would wait for the disk.
      fs::remove(folder.path() / "cut.dcm");
      const fs::path path =
          folder.write("cut.dcm", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));
      const std::string error = read_error(path);
      if (error.empty()) {
        ++opened;
        CHECK(read_level_rgb(*Slide::open(path)) == expected);
      } else {
        refusal(path, error);
      }
    }
    // The delimiter behind the last frame, which the extended table needs not.
    CHECK(opened == (table == Table::extended ? 8 : 0));
  }
}

}  // namespace slidestream::test
