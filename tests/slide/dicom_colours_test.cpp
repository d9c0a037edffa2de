#include <doctest/doctest.h>

#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/dicom_pictures.hpp"
#include "slide/test_images.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

namespace {

using Lines = std::vector<std::string>;

/// A picture of one tile: its frame is what counts here.
Picture small_picture() { return cut(picture_for(Codec::jpeg), 0, 0, 64, 64); }

/// A slide of one frame.
DicomFile file_of(const Bytes& frame, Codec codec, const std::string& photometric) {
  DicomFile file = make_dicom(small_picture(), {.codec = codec});
  file.frames = {frame};
  file.set.text(0x00280004, "CS", photometric);
  return file;
}

/// Samples of the frame, taken for Y, Cb and Cr: what a TIFF file whose tag says so has.
std::vector<std::vector<std::uint8_t>> pixels_as_ycbcr(const Bytes& codestream) {
  const TemporaryFolder folder;
  TestTiff tiff = make_same_tiff(small_picture(), {.codec = Codec::jpeg2000});
  tiff.directories[0].set_short(259, 34712).set_short(262, 6).tiles = {codestream};
  return pixels_of(folder.write("same.tif", tiff.bytes()));
}

std::vector<std::vector<std::uint8_t>> pixels_as_rgb(const Bytes& codestream) {
  const Picture decoded = decode_jpeg2000_rgb(codestream);
  return {formula(decoded), decoded.data};
}

}  // namespace

TEST_CASE("DICOM: JPEG 2000 without a component transform is what PhotometricInterpretation says") {
  const TemporaryFolder folder;
  for (const bool irreversible : {false, true}) {
    CAPTURE(irreversible);
    const Bytes plain =
        encode_jpeg2000(small_picture(), {.irreversible = irreversible, .colour_transform = false, .rate = 4});
    const auto ycbcr = pixels_as_ycbcr(plain);
    const auto rgb = pixels_as_rgb(plain);
    CHECK(ycbcr[0] != rgb[0]);  // the test can tell
    CHECK(ycbcr[1] != rgb[1]);
    for (const char* says : {"YBR_FULL", "YBR_FULL_422", "RGB", "YBR_ICT", "YBR_RCT"}) {
      CAPTURE(says);
      const bool is_ycbcr = std::string(says).starts_with("YBR_FULL");
      const auto path = folder.write("slide.dcm", file_of(plain, Codec::jpeg2000, says).encode());
      CHECK(pixels_of(path) == (is_ycbcr ? ycbcr : rgb));
      CHECK(Slide::open(path)->info().levels[0].colour == (is_ycbcr ? Colour::ycbcr : Colour::rgb));
    }
  }
}

TEST_CASE("DICOM: behind a component transform JPEG 2000 is RGB, whatever PhotometricInterpretation says") {
  const TemporaryFolder folder;
  for (const bool irreversible : {false, true}) {
    CAPTURE(irreversible);
    const Bytes transformed = encode_jpeg2000(small_picture(), {.irreversible = irreversible, .rate = 4});
    const std::vector<std::uint8_t> expected = decode_jpeg2000_rgb(transformed).data;
    for (const char* says : {"YBR_FULL", "YBR_FULL_422", "RGB", "YBR_ICT", "YBR_RCT"}) {
      CAPTURE(says);
      const auto slide = Slide::open(folder.write("slide.dcm", file_of(transformed, Codec::jpeg2000, says).encode()));
      CHECK(read_level_rgb(*slide) == expected);
      CHECK(slide->info().warnings == Lines{});
    }
  }
}

}  // namespace slidestream::test
