#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "slide/dicom_pictures.hpp"
#include "slide/marked_jpeg.hpp"
#include "slide/test_images.hpp"
#include "slide/tile_colour.hpp"
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
    for (const char* says : {"YBR_FULL", "YBR_FULL_422", "RGB", "YBR_ICT", "YBR_RCT", "YBR_Doe^Jane"}) {
      CAPTURE(says);
      const bool is_ict = says == std::string("YBR_ICT");
      const bool is_ycbcr = is_ict || std::string(says).starts_with("YBR_FULL");
      const auto path = folder.write("slide.dcm", file_of(plain, Codec::jpeg2000, says).encode());
      CHECK(pixels_of(path) == (is_ycbcr ? ycbcr : rgb));
      const auto slide = Slide::open(path);
      CHECK(slide->info().levels[0].colour == (is_ycbcr ? Colour::ycbcr : Colour::rgb));
      const bool is_of_transform = is_ict || (!is_ycbcr && says != std::string("RGB"));
      const std::string shown = says == std::string("YBR_Doe^Jane") ? "an unknown value" : says;
      CHECK(slide->info().warnings == (is_of_transform
                                           ? Lines{"its JPEG 2000 codestreams have no component transform, and "
                                                   "PhotometricInterpretation is " +
                                                   shown + ": taken as " + (is_ict ? "YCbCr" : "RGB")}
                                           : Lines{}));
    }
  }
}

TEST_CASE("DICOM: behind a component transform JPEG 2000 is RGB, whatever PhotometricInterpretation says") {
  const TemporaryFolder folder;
  for (const bool irreversible : {false, true}) {
    CAPTURE(irreversible);
    const Bytes transformed = encode_jpeg2000(small_picture(), {.irreversible = irreversible, .rate = 4});
    const std::vector<std::uint8_t> expected = decode_jpeg2000_rgb(transformed).data;
    for (const std::string says : {"YBR_FULL", "YBR_FULL_422", "YBR_PARTIAL_420", "RGB", "YBR_ICT", "YBR_RCT"}) {
      CAPTURE(says);
      const std::string line = std::string("its JPEG 2000 codestreams have the ") +
                               (irreversible ? "irreversible" : "reversible") +
                               " component transform, and PhotometricInterpretation is " + says + ": taken as RGB";
      const bool is_named = says == (irreversible ? "YBR_ICT" : "YBR_RCT");
      // The tile-part's header goes before the main one's.
      for (const Bytes& frame : {transformed, with_coding_in_tile(transformed)}) {
        const auto slide = Slide::open(folder.write("slide.dcm", file_of(frame, Codec::jpeg2000, says).encode()));
        CHECK(read_level_rgb(*slide) == expected);
        CHECK(slide->info().warnings == (is_named ? Lines{} : Lines{line}));
      }
    }
  }
}

TEST_CASE("DICOM: under YBR_ICT each JPEG 2000 frame is what its own component transform leaves") {
  const TemporaryFolder folder;
  const Picture picture = cut(picture_for(Codec::jpeg2000), 0, 0, 128, 64);
  const Bytes plain = encode_jpeg2000(cut(picture, 64, 0, 64, 64), {.irreversible = false, .colour_transform = false});
  DicomFile file = make_dicom(picture, {.codec = Codec::jpeg2000});
  REQUIRE(file.frames.size() == 2);
  const Bytes transformed = file.frames[0];
  file.frames[1] = plain;
  const auto slide = Slide::open(folder.write("slide.dcm", file.encode()));
  const Picture read{128, 64, 3, read_level_rgb(*slide)};
  CHECK(cut(read, 0, 0, 64, 64).data == decode_jpeg2000_rgb(transformed).data);
  CHECK(cut(read, 64, 0, 64, 64).data == pixels_as_ycbcr(plain)[1]);
  CHECK(slide->info().warnings == Lines{"some of its JPEG 2000 codestreams have no component transform, and "
                                        "PhotometricInterpretation is YBR_ICT: taken as YCbCr"});
  CHECK(colour_of_tiles(*slide, 0) == Colour::rgb);
}

TEST_CASE("DICOM: the first, a middle and the last frame are compared with PhotometricInterpretation") {
  const TemporaryFolder folder;
  const Picture picture = cut(picture_for(Codec::jpeg2000), 0, 0, 128, 100);
  const Bytes plain = encode_jpeg2000(small_picture(), {.colour_transform = false});
  const std::string line =
      "its JPEG 2000 codestreams have no component transform, and PhotometricInterpretation is YBR_ICT: taken as YCbCr";
  for (const std::size_t other : {0, 1, 3}) {
    CAPTURE(other);
    DicomFile file = make_dicom(picture, {.codec = Codec::jpeg2000});
    REQUIRE(file.frames.size() == 4);
    file.frames[other] = plain;
    const auto slide = Slide::open(folder.write("slide.dcm", file.encode()));
    CHECK(slide->info().warnings == Lines{other == 0 ? line : "some of " + line});
  }
  // Damaged ones say nothing, and the others are still asked.
  DicomFile file = make_dicom(picture, {.codec = Codec::jpeg2000});
  file.frames[0].assign(64, std::byte{1});
  file.frames[3] = plain;
  CHECK(Slide::open(folder.write("slide.dcm", file.encode()))->info().warnings == Lines{"some of " + line});
}

TEST_CASE("DICOM: a component transform is what the tile-part's header of JPEG 2000 says, before the main header") {
  const TemporaryFolder folder;
  const auto open = [&](const Bytes& frame) {
    return Slide::open(folder.write("slide.dcm", file_of(frame, Codec::jpeg2000, "YBR_ICT").encode()));
  };
  const Bytes plain = encode_jpeg2000(small_picture(), {.colour_transform = false});
  const auto without = open(with_coding_in_tile(plain));
  CHECK(read_level_rgb(*without) == pixels_as_ycbcr(plain)[1]);
  CHECK(without->info().warnings == Lines{"its JPEG 2000 codestreams have no component transform, and "
                                          "PhotometricInterpretation is YBR_ICT: taken as YCbCr"});
  const Bytes transformed = encode_jpeg2000(small_picture());
  const auto with = open(with_coding_in_tile(transformed));
  CHECK(read_level_rgb(*with) == decode_jpeg2000_rgb(transformed).data);
  CHECK(with->info().warnings == Lines{});
}

TEST_CASE("DICOM: components of JPEG 2000 that are sampled apart are YCbCr, and no line says otherwise") {
  const TemporaryFolder folder;
  const Bytes apart = encode_jpeg2000(
      small_picture(), {.irreversible = false, .colour_transform = false, .chroma_dx = 2, .chroma_dy = 2});
  const auto slide = Slide::open(folder.write("slide.dcm", file_of(apart, Codec::jpeg2000, "YBR_ICT").encode()));
  CHECK(read_level_rgb(*slide) == pixels_as_ycbcr(apart)[1]);
  CHECK(slide->info().warnings == Lines{});
}

TEST_CASE("DICOM: a frame may be a JP2 file, and have a byte that makes it even") {
  const TemporaryFolder folder;
  const auto open = [&](const Bytes& frame, const char* says) {
    return Slide::open(folder.write("slide.dcm", file_of(frame, Codec::jpeg2000, says).encode()));
  };
  Bytes transformed = encode_jpeg2000(small_picture(), {.irreversible = false, .jp2 = true});
  // Odd frames get one more.
  for (int i = 0; i < 3; ++i, transformed.emplace_back()) {
    const auto slide = open(transformed, "YBR_RCT");
    CHECK(read_level_rgb(*slide) == small_picture().data);
    CHECK(slide->info().warnings == Lines{});
  }
  const Bytes plain = encode_jpeg2000(small_picture(), {.irreversible = false, .colour_transform = false, .jp2 = true});
  CHECK(open(plain, "YBR_ICT")->info().warnings ==
        Lines{"its JPEG 2000 codestreams have no component transform, and PhotometricInterpretation is YBR_ICT: taken "
              "as YCbCr"});
}

TEST_CASE("DICOM: JPEG 2000 that is YCbCr by itself under the label RGB gets a line") {
  const TemporaryFolder folder;
  const auto lines = [&](const Bytes& frame, const char* says) {
    return Slide::open(folder.write("slide.dcm", file_of(frame, Codec::jpeg2000, says).encode()))->info().warnings;
  };
  Bytes sycc = encode_jpeg2000(small_picture(), {.irreversible = false, .colour_transform = false, .jp2 = true});
  const Bytes box = bytes_of({"colr\1\0\0\0\0\0\x10", 11});
  const auto found = std::search(sycc.begin(), sycc.end(), box.begin(), box.end());
  REQUIRE(found != sycc.end());
  found[10] = std::byte{18};
  const Bytes apart = encode_jpeg2000(
      small_picture(), {.irreversible = false, .colour_transform = false, .chroma_dx = 2, .chroma_dy = 2});
  const std::string taken = ", which means YCbCr, and PhotometricInterpretation is RGB: taken as YCbCr";
  CHECK(lines(sycc, "RGB") == Lines{"its JPEG 2000 frames are JP2 files that say sYCC" + taken});
  CHECK(lines(apart, "RGB") == Lines{"its JPEG 2000 frames have subsampled components" + taken});
  CHECK(lines(sycc, "YBR_FULL") == Lines{});
}

TEST_CASE("DICOM: JPEG is what PhotometricInterpretation says, and a mark that contradicts it is a line") {
  const TemporaryFolder folder;
  const Bytes plain = with_tables(encode_jpeg(small_picture(), {.horizontal = 1, .vertical = 1}), {0, 0, 0});
  const std::vector<std::uint8_t> as_rgb = decode_jpeg_components(plain).data;
  const std::vector<std::uint8_t> as_ycbcr = decode_jpeg_rgb(plain).data;
  CHECK(as_rgb != as_ycbcr);  // the test can tell
  const auto check = [&](const Bytes& frame, const std::string& says, const std::string& mark, Codec codec) {
    CAPTURE(says);
    CAPTURE(mark);
    DicomFile file = file_of(frame, codec, says);
    for (const Table table : {Table::none, Table::basic, Table::extended}) {
      file.table = table;
      const auto slide = Slide::open(folder.write("slide.dcm", file.encode()));
      const char* taken = says == "RGB" ? "RGB" : "YCbCr";
      CHECK(slide->info().warnings ==
            (mark.empty() ? Lines{}
                          : Lines{"its JPEG frames have " + mark + ", and PhotometricInterpretation is " + says +
                                  ": taken as " + taken}));
      CHECK(read_level_rgb(*slide) == (says == "RGB" ? as_rgb : as_ycbcr));
    }
  };
  const std::string jfif = "a JFIF marker, which means YCbCr";
  check(plain, "RGB", "", Codec::jpeg_rgb);
  check(with_jfif(plain), "RGB", jfif, Codec::jpeg_rgb);
  check(with_adobe(plain, 1), "RGB", "Adobe's marker with transform 1, which means YCbCr", Codec::jpeg_rgb);
  check(with_adobe(plain, 0), "RGB", "", Codec::jpeg_rgb);
  // A head of any length: the mark lies behind 60,000 bytes of somebody else's.
  Bytes long_head = bytes_of({"\xFF\xE5\xEA\x62", 4});
  long_head.resize(60'004);
  check(with_segment(with_jfif(plain), long_head), "RGB", jfif, Codec::jpeg_rgb);
  for (const char* says : {"YBR_FULL", "YBR_FULL_422"}) {
    check(with_jfif(plain), says, "", Codec::jpeg);
    check(with_adobe(plain, 1), says, "", Codec::jpeg);
    check(with_adobe(plain, 0), says, "Adobe's marker with transform 0, which means RGB", Codec::jpeg);
    check(with_identifiers(plain, "RGB"), says, "components called R, G, B, which means RGB", Codec::jpeg);
  }
}

TEST_CASE("DICOM: subsampled components under the label RGB are YCbCr, with a line") {
  const TemporaryFolder folder;
  const Bytes halved = encode_jpeg(small_picture(), {});
  for (const Bytes& frame : {halved, with_jfif(halved)}) {
    DicomFile file = file_of(frame, Codec::jpeg_rgb, "RGB");
    for (const int fragments : {1, 3}) {
      file.fragments = fragments;
      const auto slide = Slide::open(folder.write("slide.dcm", file.encode()));
      CHECK(read_level_rgb(*slide) == decode_jpeg_rgb(frame).data);
      CHECK(slide->info().levels[0].colour == Colour::rgb);  // as it says
      CHECK(slide->info().warnings == Lines{"its JPEG frames have subsampled components, which means YCbCr, and "
                                            "PhotometricInterpretation is RGB: taken as YCbCr"});
    }
  }
  // A first frame that is no JPEG says nothing.
  Bytes damaged = halved;
  damaged[0] = std::byte{0};
  const auto slide = Slide::open(folder.write("slide.dcm", file_of(damaged, Codec::jpeg_rgb, "RGB").encode()));
  CHECK(slide->info().warnings == Lines{});
  CHECK(slide->info().levels[0].colour == Colour::rgb);
}

TEST_CASE("DICOM: components named and quantised as YCbCr under the label RGB are YCbCr, with a line") {
  const TemporaryFolder folder;
  const Bytes even = encode_jpeg(small_picture(), {.horizontal = 1, .vertical = 1});
  const Bytes real_rgb = encode_jpeg(small_picture(), {.coding = JpegOptions::Coding::rgb});
  CHECK(decode_jpeg_rgb(even).data != decode_jpeg_components(even).data);  // the test can tell
  const auto slide_of = [&](const Bytes& frame, const char* says) {
    return Slide::open(folder.write("slide.dcm", file_of(frame, Codec::jpeg_rgb, says).encode()));
  };
  for (const Bytes& frame : {even, with_jfif(even), with_adobe(even, 1), with_tables(even, {1, 0, 0}),
                             with_identifiers(even, {"\0\1\2", 3})}) {
    const auto slide = slide_of(frame, "RGB");
    CHECK(read_level_rgb(*slide) == decode_jpeg_rgb(frame).data);
    CHECK(read_level(*slide) == decode_jpeg_grey(frame).data);
    CHECK(slide->info().warnings == Lines{"its JPEG frames have a quantisation table for Cb and Cr, which means YCbCr, "
                                          "and PhotometricInterpretation is RGB: taken as YCbCr"});
  }
  // Other names, one table for all, and Adobe's marker beside the label: RGB.
  for (const Bytes& frame :
       {with_identifiers(even, "\5\6\7"), with_identifiers(with_tables(even, {0, 0, 0}), {"\0\1\2", 3}),
        with_identifiers(even, "RGB"), with_tables(even, {0, 0, 0}), with_tables(even, {0, 0, 1}), with_adobe(even, 0),
        with_identifiers(real_rgb, "\1\2\3")}) {
    const auto slide = slide_of(frame, "RGB");
    CHECK(read_level_rgb(*slide) == decode_jpeg_components(frame).data);
    CHECK(slide->info().warnings == Lines{});
  }
  CHECK(slide_of(even, "YBR_FULL")->info().warnings == Lines{});
}

TEST_CASE("DICOM: a JPEG frame of four components may be of inks, and is a bad tile") {
  const TemporaryFolder folder;
  const Bytes four = encode_jpeg(make_picture(64, 64, 4, 9), {.coding = JpegOptions::Coding::unknown});
  for (const char* says : {"RGB", "YBR_FULL_422"}) {
    CAPTURE(says);
    const std::string error = read_error(folder.write("slide.dcm", file_of(four, Codec::jpeg, says).encode()));
    CHECK(error.find("the JPEG frame has 4 components, and SamplesPerPixel says 3") != std::string::npos);
  }
}

TEST_CASE("DICOM: frames of another number of components than SamplesPerPixel get a line") {
  const TemporaryFolder folder;
  const auto check = [&](const Bytes& frame, Codec codec, const char* says, const std::string& line) {
    const auto slide = Slide::open(folder.write("slide.dcm", file_of(frame, codec, says).encode()));
    CHECK(slide->info().warnings == Lines{line});
    return read_level_rgb(*slide);
  };
  const Jpeg2000Options plain{.irreversible = false, .colour_transform = false};
  const std::string grey = " have 1 component, and SamplesPerPixel (0028,0002) is 3: they are grey";
  const Picture one = make_picture(64, 64, 1, 9);
  const auto jpeg = check(encode_jpeg(one, {.coding = JpegOptions::Coding::grey, .horizontal = 1, .vertical = 1}),
                          Codec::jpeg, "YBR_FULL_422", "its JPEG frames" + grey);
  CHECK(jpeg[0] == jpeg[1]);
  const auto jpeg2000 = check(encode_jpeg2000(one, plain), Codec::jpeg2000, "RGB", "its JPEG 2000 codestreams" + grey);
  CHECK(jpeg2000[0] == one.data[0]);
  CHECK(jpeg2000[2] == one.data[0]);
  const Picture four = make_picture(64, 64, 4, 9);
  const auto colours = check(encode_jpeg2000(four, plain), Codec::jpeg2000, "RGB",
                             "its JPEG 2000 codestreams have 4 components, and SamplesPerPixel (0028,0002) is 3: "
                             "further ones are passed over");
  CHECK(colours[0] == four.data[0]);
  CHECK(colours[3] == four.data[4]);
}

TEST_CASE("DICOM: each JPEG frame has the colour that its own sampling leaves, whatever the first frame is") {
  const TemporaryFolder folder;
  const Picture picture = cut(picture_for(Codec::jpeg), 0, 0, 128, 64);
  const std::array halves = {cut(picture, 0, 0, 64, 64), cut(picture, 64, 0, 64, 64)};
  struct Frame {
    bool halved;  ///< 4:2:0, else 4:4:4
    Bytes (*marked)(const Bytes&);
  };
  const auto unmarked = [](const Bytes& jpeg) { return jpeg; };
  const auto called_rgb = [](const Bytes& jpeg) { return with_identifiers(jpeg, "RGB"); };
  const auto of_adobe = [](const Bytes& jpeg) { return with_adobe(jpeg, 0); };
  const auto check = [&](const std::string& says, const std::array<Frame, 2>& frames) {
    CAPTURE(says);
    DicomFile file = make_dicom(picture, {});
    std::array<Picture, 2> expected;
    for (std::size_t i = 0; i < 2; ++i) {
      const int factor = frames[i].halved ? 2 : 1;
      // One table for all, so that sampling alone tells.
      const Bytes coded = with_tables(encode_jpeg(halves[i], {.horizontal = factor, .vertical = factor}), {0, 0, 0});
      CHECK(decode_jpeg_rgb(coded).data != decode_jpeg_components(coded).data);  // the test can tell
      file.frames[i] = frames[i].marked(coded);
      const bool is_rgb = says == "RGB" && !frames[i].halved;
      expected[i] = is_rgb ? decode_jpeg_components(coded) : decode_jpeg_rgb(coded);
    }
    file.set.text(0x00280004, "CS", says);
    const auto slide = Slide::open(folder.write("slide.dcm", file.encode()));
    const Picture read{128, 64, 3, read_level_rgb(*slide)};
    CHECK(cut(read, 0, 0, 64, 64).data == expected[0].data);
    CHECK(cut(read, 64, 0, 64, 64).data == expected[1].data);
  };
  check("RGB", {Frame{false, unmarked}, {true, unmarked}});
  check("RGB", {Frame{false, with_jfif}, {true, with_jfif}});
  check("RGB", {Frame{true, unmarked}, {false, unmarked}});
  check("RGB", {Frame{true, with_jfif}, {false, called_rgb}});
  check("YBR_FULL_422", {Frame{false, called_rgb}, {true, unmarked}});
  check("YBR_FULL_422", {Frame{true, unmarked}, {false, of_adobe}});
}

TEST_CASE("DICOM: levels with the same contradiction are one line, and a label's line names it") {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const Picture& picture, const DicomOptions& options) {
    DicomFile file = make_dicom(picture, options);
    for (Bytes& frame : file.frames) frame = with_jfif(frame);
    file.set.text(0x00280004, "CS", "RGB");
    return folder.write(name, file.encode());
  };
  const Picture picture = picture_for(Codec::jpeg);
  const fs::path path = write("a.dcm", picture, {});
  write("b.dcm", reduced(picture, 2), {.instance = "1.2.3.2", .spacing = "0.001\\0.001"});
  const std::string line =
      "its JPEG frames have subsampled components, which means YCbCr, and PhotometricInterpretation is RGB: taken as "
      "YCbCr";
  CHECK(Slide::open(path)->info().warnings == Lines{line});
  write("c.dcm", small_picture(), {.flavour = "LABEL", .instance = "1.2.3.3"});
  const auto slide = Slide::open(path);
  CHECK(slide->info().associated == Lines{"label"});
  CHECK(slide->info().warnings == Lines{line, "the image label: " + line});
}

TEST_CASE("DICOM: a channel can be chosen only where there is one") {
  const TemporaryFolder folder;
  const auto error = [&](Codec codec, int channel) {
    return open_error(folder.write("slide.dcm", make_dicom(picture_for(codec), {.codec = codec}).encode()),
                      {.channel = channel});
  };
  for (const Codec codec : {Codec::jpeg, Codec::jpeg_rgb}) {
    CHECK(error(codec, -1).empty());
    CHECK(error(codec, OpenOptions::any_channel).empty());
    CHECK(error(codec, 0).ends_with("slide.dcm: input.channel is 0, but its pixels are RGB; leave it out"));
    CHECK(error(codec, 1).ends_with("slide.dcm: input.channel is 1, but its pixels are RGB; leave it out"));
  }
  CHECK(error(Codec::jpeg_grey, 0).empty());
  CHECK(error(Codec::jpeg_grey, 1).ends_with("slide.dcm: input.channel is 1; it has one channel, 0"));
}

}  // namespace slidestream::test
