#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "slide/dicom_pictures.hpp"
#include "slide/jpegls_decoder.hpp"
#include "support/temporary_folder.hpp"
#include "support/wide.hpp"

namespace slidestream::test {

TEST_CASE("DICOM: JPEG-LS has the pixels that were coded, in every order of its samples") {
  const TemporaryFolder folder;
  if (!decodes_jpegls()) {
    const fs::path path =
        folder.write("slide.dcm", make_dicom(picture_for(Codec::none), {.codec = Codec::jpegls}).encode());
    CHECK(open_error(path) ==
          path.string() + ": TransferSyntaxUID (0002,0010) is JPEG-LS, and this program was built without CharLS");
    return;
  }
  for (const Codec kind : {Codec::none, Codec::jpeg_grey}) {
    const Picture picture = picture_for(kind);
    DicomFile file = make_dicom(picture, {.codec = Codec::none});
    const auto expected = pixels_of(folder.write("slide.dcm", file.encode()));
    const std::vector<Bytes> plain = file.frames;
    file.syntax = "1.2.840.10008.1.2.4.80";
    for (const char* photometric : {"RGB", "YBR_FULL"}) {
      if (picture.samples == 1 && std::string(photometric) == "YBR_FULL") continue;
      DicomFile same = make_dicom(picture, {.codec = Codec::none});
      if (picture.samples == 3) {
        same.set.text(0x00280004, "CS", photometric);
        file.set.text(0x00280004, "CS", photometric);
      }
      const auto wanted = pixels_of(folder.write("slide.dcm", same.encode()));
      for (const JpeglsOrder order : {JpeglsOrder::components, JpeglsOrder::rows, JpeglsOrder::pixels}) {
        CAPTURE(static_cast<int>(order));
        for (std::size_t i = 0; i < plain.size(); ++i) {
          const int x = static_cast<int>(i) % 3 * 64;
          const int y = static_cast<int>(i) / 3 * 64;
          file.frames[i] = encode_jpegls(cut(picture, x, y, 64, 64), order);
        }
        CHECK(pixels_of(folder.write("slide.dcm", file.encode())) == wanted);
      }
    }
    // Near-lossless: no sample is further away than the encoder was allowed.
    file.syntax = "1.2.840.10008.1.2.4.81";
    if (picture.samples == 3) file.set.text(0x00280004, "CS", "RGB");
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const int x = static_cast<int>(i) % 3 * 64;
      const int y = static_cast<int>(i) / 3 * 64;
      file.frames[i] = encode_jpegls(cut(picture, x, y, 64, 64), JpeglsOrder::rows, 3);
    }
    const std::vector<std::uint8_t> near = pixels_of(folder.write("slide.dcm", file.encode()))[1];
    REQUIRE(near.size() == expected[1].size());
    int furthest = 0;
    for (std::size_t i = 0; i < near.size(); ++i) {
      furthest = std::max(furthest, std::abs(int{near[i]} - int{expected[1][i]}));
    }
    CHECK(furthest > 0);
    CHECK(furthest <= 3);
  }
}

TEST_CASE("DICOM: JPEG-LS that isn't the slide's tile is a bad tile") {
  const TemporaryFolder folder;
  if (!decodes_jpegls()) return;
  const Picture picture = picture_for(Codec::none);
  const DicomFile sound = make_dicom(picture, {.codec = Codec::jpegls});
  const auto what_the_first_tile_says = [&](Bytes frame) {
    DicomFile file = sound;
    file.frames[0] = std::move(frame);
    // A file that is cut to nothing and written again would wait for the disk.
    fs::remove(folder.path() / "slide.dcm");
    const fs::path path = folder.write("slide.dcm", file.encode());
    const std::string text = read_error(path);
    const std::string prefix = path.string() + ": level 0 tile 0 (column 0, row 0): ";
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
  };
  CHECK(what_the_first_tile_says(sound.frames[0]) == "");
  CHECK(what_the_first_tile_says(encode_jpegls(cut(picture, 0, 0, 64, 32))) ==
        "decodes to 64 x 32 pixels, expected 64 x 64");
  CHECK(what_the_first_tile_says(encode_jpegls(cut(picture_for(Codec::jpeg_grey), 0, 0, 64, 64))) ==
        "the JPEG-LS image has 1 components, and the slide has 3 samples");
  CHECK(what_the_first_tile_says(encode_jpegls(cut(picture, 0, 0, 64, 64), JpeglsOrder::rows, 0, 12)) ==
        "JPEG-LS samples of 12 bits; supported: 8");
  const auto step = static_cast<std::size_t>(wide_or_few(7, 49));
  for (std::size_t length = 2; length + 16 < sound.frames[0].size(); length += step) {
    CAPTURE(length);
    Bytes shorter(sound.frames[0].begin(), sound.frames[0].begin() + static_cast<std::ptrdiff_t>(length));
    CHECK(what_the_first_tile_says(shorter) == "the JPEG-LS image has no end");
    shorter.insert(shorter.end(), {std::byte{0xFF}, std::byte{0xD9}});
    CHECK(what_the_first_tile_says(shorter).starts_with("CharLS: "));
  }
  CHECK(what_the_first_tile_says(make_dicom(picture).frames[0]).starts_with("CharLS: "));  // JPEG
}

}  // namespace slidestream::test
