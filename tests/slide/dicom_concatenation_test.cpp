// Parts of one image in several files that contradict each other: a line, or the file is refused.

#include <doctest/doctest.h>

#include <functional>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "slide/dicom_parts.hpp"
#include "slide/dicom_pictures.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

namespace {

using Change = std::function<void(DicomSet&)>;

/// Two files of three frames each.
std::vector<DicomFile> two_parts(bool sparse) {
  std::vector<DicomFile> parts = dicom_halves(make_dicom(picture_for(Codec::jpeg), {.sparse = sparse}));
  if (sparse) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto first = row_by_row.begin() + static_cast<std::ptrdiff_t>(3 * i);
      parts[i].set.items(0x52009230, frames_at(Places(first, first + 3)));
    }
  }
  return parts;
}

struct Opened {
  std::string error;  ///< without the path of the slide
  Lines lines;
};

Opened opened(const std::vector<DicomFile>& parts) {
  const TemporaryFolder folder;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    folder.write("part-" + std::to_string(i + 1) + ".dcm", parts[i].encode());
  }
  const fs::path path = folder.path() / "part-1.dcm";
  const std::string error = open_error(path);
  if (!error.empty()) return {error.substr(path.string().size()), {}};
  return {"", Slide::open(path)->info().warnings};
}

Opened with_second(bool sparse, const Change& change) {
  std::vector<DicomFile> parts = two_parts(sparse);
  change(parts[1].set);
  return opened(parts);
}

constexpr std::uint32_t total_number = 0x00209163;
constexpr std::uint32_t orientation = 0x00480102;

}  // namespace

TEST_CASE("DICOM: parts of a concatenation agree how many they are, or are refused") {
  for (const bool sparse : {false, true}) {
    CAPTURE(sparse);
    CHECK(opened(two_parts(sparse)).lines == Lines{});
    CHECK(with_second(sparse, [](DicomSet& set) { set.number(total_number, "US", 3); }).error ==
          ": part-2.dcm: InConcatenationTotalNumber (0020,9163) is 3, and 2 in a part before");
    std::vector<DicomFile> parts = two_parts(sparse);
    // One of them is enough, whichever it is.
    parts[0].set.remove(total_number);
    CHECK(opened(parts).lines == Lines{});
    parts[1].set.number(total_number, "US", 3);
    CHECK(opened(parts).error == ": part-2.dcm: its concatenation has 3 parts, and 2 are there");
    CHECK(with_second(sparse, [](DicomSet& set) {
            set.number(0x00209162, "US", 1);
          }).error.ends_with("InConcatenationNumber (0020,9162) is 1, as in another file"));
  }
}

TEST_CASE("DICOM: a last part that lacks is told of, where no part counts them") {
  std::vector<DicomFile> parts = two_parts(true);
  for (DicomFile& part : parts) part.set.remove(total_number);
  CHECK(opened(parts).lines == Lines{});
  const std::vector<DicomFile> first = {parts[0]};
  CHECK(opened(first).lines ==
        Lines{"the concatenation of its image of 150 x 100 pixels doesn't say how many parts it has, and 3 of 6 tiles "
              "have no frame: they are white, and a part may be missing"});
  // A part that counts says that it is the only one.
  parts[0].set.number(total_number, "US", 1);
  CHECK(opened({parts[0]}).lines == Lines{});
  parts = two_parts(false);
  parts[0].set.remove(total_number);
  CHECK(opened({parts[0]}).error == ": NumberOfFrames (0028,0008) is 3 in all parts, and 3 x 2 tiles are TILED_FULL");
}

TEST_CASE("DICOM: parts with frames at one place are told of") {
  CHECK(with_second(true,
                    [](DicomSet& set) {
                      set.items(0x52009230, {dicom_frame_at(65, 1), dicom_frame_at(65, 65), dicom_frame_at(129, 65)});
                    })
            .lines == Lines{"frames of its image of 150 x 100 pixels lie where others do: 1, the first at column 65, "
                            "row 1: the last one at a place is shown"});
}

TEST_CASE("DICOM: the orientation of each part counts, and parts that differ are told of") {
  const std::string usual = "0\\-1\\0\\-1\\0\\0";
  const std::string differs =
      "its ImageOrientationSlide (0048,0102) of part 2 isn't that of part 1: the pixels of all parts are read as they "
      "are stored";
  std::vector<DicomFile> parts = two_parts(false);
  const auto lines = [&](const std::string& first, const std::string& second) {
    parts[0].set.text(orientation, "DS", first);
    parts[1].set.text(orientation, "DS", second);
    return opened(parts).lines;
  };
  CHECK(lines(usual, "0.01\\-1\\0\\-1\\0\\0") == Lines{});
  const std::string turned =
      "its ImageOrientationSlide (0048,0102) says that its pixels show the slide turned: they are read as they are "
      "stored";
  CHECK(lines("0\\1\\0\\1\\0\\0", "0\\1\\0\\1\\0\\0") == Lines{turned});
  CHECK(lines(usual, "0\\1\\0\\1\\0\\0") == Lines{turned, differs});
  parts[0].set.remove(orientation);
  CHECK(opened(parts).lines == Lines{turned});
}

TEST_CASE("DICOM: parts of other sizes, colours or organisations are refused") {
  const std::string other = ": part-2.dcm: isn't coded like the part of its image before it";
  const auto error = [](std::uint32_t tag, std::int64_t value) {
    return with_second(false, [=](DicomSet& set) { set.number(tag, tag >= 0x00480000 ? "UL" : "US", value); }).error;
  };
  CHECK(error(0x00480006, 160) == other);
  CHECK(error(0x00480007, 110) == other);
  CHECK(error(0x00280010, 32) == other);
  CHECK(error(0x00280011, 32) == other);
  CHECK(with_second(false, [](DicomSet& set) { set.text(0x00280004, "CS", "RGB"); }).error == other);
  std::vector<DicomFile> parts = two_parts(true);
  parts[1].set.text(0x00209311, "CS", "TILED_FULL");
  CHECK(opened(parts).error ==
        ": part-2.dcm: DimensionOrganizationType (0020,9311) is TILED_FULL, and TILED_SPARSE in the first part");
}

TEST_CASE("DICOM: values of pixels that a later part says aren't those stored are a line") {
  CHECK(with_second(false, [](DicomSet& set) { set.text(0x00281053, "DS", "2"); }).lines ==
        Lines{"its RescaleSlope (0028,1053) is 2, and RescaleIntercept (0028,1052) 0; expected 1 and 0: pixels are "
              "read as they are stored"});
}

TEST_CASE("DICOM: a FrameType of another flavour than ImageType is told of, which counts") {
  const TemporaryFolder folder;
  const auto lines = [&](const std::string& shared, const Lines& of_frames) {
    DicomFile file = make_dicom(picture_for(Codec::jpeg));
    const auto type = [](const std::string& text) {
      DicomSet item;
      item.text(0x00089007, "CS", text);
      DicomSet group;
      group.items(0x00400710, {item});
      return group;
    };
    if (!shared.empty()) file.set.items(0x52009229, {type(shared)});
    std::vector<DicomSet> frames;
    for (const std::string& text : of_frames) frames.push_back(type(text));
    if (!frames.empty()) file.set.items(0x52009230, frames);
    return Slide::open(folder.write("slide.dcm", file.encode()))->info().warnings;
  };
  const std::string label = "ORIGINAL\\PRIMARY\\LABEL\\NONE";
  const std::string volume = "ORIGINAL\\PRIMARY\\VOLUME\\RESAMPLED";
  const Lines said = {
      "an image's ImageType (0008,0008) says VOLUME, and FrameType (0008,9007) of its frames LABEL: ImageType counts"};
  CHECK(lines("", {}) == Lines{});
  CHECK(lines(volume, {}) == Lines{});
  CHECK(lines(label, {}) == said);
  CHECK(lines("", {volume, volume, label, volume}) == said);
  CHECK(lines("", {volume, volume}) == Lines{});
  CHECK(lines("ORIGINAL", {}) == Lines{});
  CHECK(lines(std::string(300, 'A'), {}) == Lines{});
}

}  // namespace slidestream::test
