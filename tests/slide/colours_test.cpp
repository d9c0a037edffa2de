// What tags and tiles say of colours: the rows of the table in docs/formats.md.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/ycbcr.hpp"
#include "slide/marked_jpeg.hpp"
#include "slide/test_images.hpp"
#include "slide/tile_colour.hpp"
#include "slide/tile_file.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

using Coding = JpegOptions::Coding;

constexpr std::string_view from_0("\0\1\2", 3), from_1("\1\2\3", 3), from_5("\5\6\7"), letters("RGB", 3);

/// Y, Cb and Cr of each pixel as RGB, by libjpeg's formula.
Pixels converted(const Picture& picture) {
  Pixels pixels;
  for (std::size_t i = 0; i + 2 < picture.data.size(); i += 3) {
    const Rgb rgb = ycbcr_to_rgb(picture.data[i], picture.data[i + 1], picture.data[i + 2]);
    pixels.insert(pixels.end(), {rgb.red, rgb.green, rgb.blue});
  }
  return pixels;
}

enum class Is { rgb, ycbcr, refused };

struct Row {
  const char* what;
  std::uint64_t tag;
  bool jfif;
  int adobe;  ///< -1: no marker
  std::string_view identifiers;
  bool subsampled;
  Is is;
  std::array<int, 3> tables = {0, 0, 0};  ///< numbers of the quantisation tables
};

constexpr std::array<int, 3> as_libjpeg_has_ycbcr = {0, 1, 1};

constexpr Row rows[] = {
    {"nothing but the tag", rgb_tag, false, -1, from_1, false, Is::rgb},
    {"nothing but the tag, Aperio's identifiers", rgb_tag, false, -1, from_0, false, Is::rgb},
    {"the identifiers agree", rgb_tag, false, -1, letters, false, Is::rgb},
    {"nothing but the tag", ycbcr_tag, false, -1, from_1, false, Is::ycbcr},
    {"nothing but the tag", ycbcr_tag, false, -1, from_0, true, Is::ycbcr},
    {"JFIF against RGB, as QuPath and Bio-Formats wrote", rgb_tag, true, -1, from_1, true, Is::ycbcr},
    {"JFIF against RGB", rgb_tag, true, -1, from_1, false, Is::ycbcr},
    {"JFIF agrees", ycbcr_tag, true, -1, from_1, true, Is::ycbcr},
    {"Adobe's YCbCr against RGB", rgb_tag, false, 1, from_1, false, Is::ycbcr},
    {"Adobe's YCbCr and JFIF against RGB", rgb_tag, true, 1, from_1, true, Is::ycbcr},
    {"Adobe's YCbCr agrees", ycbcr_tag, false, 1, from_0, true, Is::ycbcr},
    {"Adobe's RGB agrees", rgb_tag, false, 0, letters, false, Is::rgb},
    {"Adobe's RGB agrees", rgb_tag, false, 0, from_1, false, Is::rgb},
    {"Adobe's RGB against YCbCr", ycbcr_tag, false, 0, letters, false, Is::rgb},
    {"Adobe's marker without meaning, as none", rgb_tag, false, 77, from_1, false, Is::rgb},
    {"sampling and identifiers against RGB", rgb_tag, false, -1, from_1, true, Is::ycbcr},
    {"sampling alone against RGB", rgb_tag, false, -1, from_0, true, Is::refused},
    {"tables and identifiers against RGB", rgb_tag, false, -1, from_1, false, Is::ycbcr, as_libjpeg_has_ycbcr},
    {"tables the other way round", rgb_tag, false, -1, from_1, false, Is::ycbcr, {1, 0, 0}},
    {"tables and identifiers agree", ycbcr_tag, false, -1, from_1, false, Is::ycbcr, as_libjpeg_has_ycbcr},
    {"tables against RGB, and a marker without meaning", rgb_tag, false, 77, from_1, false, Is::ycbcr,
     as_libjpeg_has_ycbcr},
    {"tables, sampling and identifiers against RGB", rgb_tag, false, -1, from_1, true, Is::ycbcr, as_libjpeg_has_ycbcr},
    {"tables and JFIF against RGB", rgb_tag, true, -1, from_1, false, Is::ycbcr, as_libjpeg_has_ycbcr},
    {"tables and identifiers from 0 against RGB", rgb_tag, false, -1, from_0, false, Is::ycbcr, as_libjpeg_has_ycbcr},
    {"tables, sampling and identifiers from 0 against RGB", rgb_tag, false, -1, from_0, true, Is::ycbcr,
     as_libjpeg_has_ycbcr},
    {"tables and identifiers from 0 against Adobe's RGB", rgb_tag, false, 0, from_0, false, Is::rgb,
     as_libjpeg_has_ycbcr},
    {"the third component's table alone, identifiers from 0", rgb_tag, false, -1, from_0, false, Is::rgb, {0, 0, 1}},
    {"tables alone against RGB", rgb_tag, false, -1, from_5, false, Is::rgb, as_libjpeg_has_ycbcr},
    {"tables against names", rgb_tag, false, -1, letters, false, Is::rgb, as_libjpeg_has_ycbcr},
    {"tables against Adobe's RGB", rgb_tag, false, 0, from_1, false, Is::rgb, as_libjpeg_has_ycbcr},
    {"tables and the tag against Adobe's RGB", ycbcr_tag, false, 0, from_1, false, Is::rgb, as_libjpeg_has_ycbcr},
    {"the third component's table alone", rgb_tag, false, -1, from_1, false, Is::rgb, {0, 0, 1}},
    {"the second component's table alone", rgb_tag, false, -1, from_1, false, Is::rgb, {0, 1, 0}},
    {"one other table for all", rgb_tag, false, -1, from_1, false, Is::rgb, {1, 1, 1}},
    {"identifiers against YCbCr", ycbcr_tag, false, -1, letters, false, Is::refused},
    {"sampling against identifiers", rgb_tag, false, -1, letters, true, Is::refused},
    {"JFIF against identifiers", rgb_tag, true, -1, letters, false, Is::refused},
    {"Adobe's RGB against JFIF", rgb_tag, true, 0, from_1, false, Is::refused},
    {"Adobe's RGB against sampling", ycbcr_tag, false, 0, from_1, true, Is::refused},
    {"Adobe's YCCK of three components", ycbcr_tag, false, 2, from_1, false, Is::refused},
};

/// A tile as the row has it, and the same without its marks.
std::pair<Bytes, Bytes> tiles_of(const Row& row, const Picture& picture) {
  const int factor = row.subsampled ? 2 : 1;
  const Bytes bare = with_tables(encode_jpeg(picture, {.horizontal = factor, .vertical = factor}), row.tables);
  Bytes tile = with_identifiers(bare, row.identifiers);
  if (row.adobe >= 0) tile = with_adobe(tile, row.adobe);
  if (row.jfif) tile = with_jfif(tile);
  return {tile, bare};
}

}  // namespace

TEST_CASE("JPEG: markers, sampling and tables overrule the tag, and what can't be told apart is refused") {
  const Picture picture = make_stained_picture(64, 48, 1);
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CAPTURE(row.tag);
    CAPTURE(row.tables[1]);
    const auto [tile, bare] = tiles_of(row, picture);
    const TileFile file(directory_of({tile}, row.tag));
    if (row.is == Is::refused) {
      const std::string error = file.error();
      CAPTURE(error);
      CHECK(
          error.find("level 0 tile 0 (column 0, row 0): its colours can't be told: PhotometricInterpretation says ") !=
          std::string::npos);
      continue;
    }
    CHECK(file.read() == decode_jpeg_rgb(bare, row.is == Is::rgb).data);
    const auto slide = Slide::open(file.write());
    const Pixels luminance = read_level(*slide);
    CHECK(luminance == (row.is == Is::rgb ? formula(decode_jpeg_components(bare)) : decode_jpeg_grey(bare).data));
  }
}

TEST_CASE("JPEG: a refusal names the tag and what is against it") {
  const Picture picture = make_stained_picture(64, 48, 1);
  const auto error = [](const Bytes& tile, std::uint64_t tag) { return TileFile(directory_of({tile}, tag)).error(); };
  const Bytes even = encode_jpeg(picture, {.horizontal = 1, .vertical = 1}), apart = encode_jpeg(picture);
  CHECK(error(with_identifiers(with_tables(apart, {0, 0, 0}), from_0), rgb_tag)
            .ends_with("PhotometricInterpretation says RGB, the JPEG frame's components' sampling YCbCr"));
  CHECK(error(with_identifiers(even, letters), ycbcr_tag)
            .ends_with("PhotometricInterpretation says YCbCr, the JPEG frame's components' names RGB"));
  CHECK(error(with_jfif(with_adobe(even, 0)), rgb_tag)
            .ends_with("says RGB, the JPEG frame's JFIF header YCbCr, its Adobe marker RGB"));
}

TEST_CASE("JPEG: tiles of a level and levels of a slide may say different things") {
  const Picture picture = make_stained_picture(64, 48, 2);
  const Bytes rgb = encode_jpeg(picture, {.coding = Coding::rgb}), ycbcr = with_jfif(encode_jpeg(picture));
  const Pixels left = decode_jpeg_rgb(rgb, true).data, right = decode_jpeg_rgb(ycbcr).data;
  for (const std::uint64_t tag : {rgb_tag, ycbcr_tag}) {
    // RGB without a mark is what the tag says; Adobe's marker says it for itself.
    const Bytes first = tag == rgb_tag ? with_identifiers(rgb, from_0) : with_adobe(rgb, 0);
    const Pixels both = TileFile(directory_of({first, ycbcr}, tag)).read();
    for (std::size_t y = 0; y < 48; ++y) {
      const auto row = both.begin() + static_cast<std::ptrdiff_t>(y * 384);
      CHECK(std::equal(row, row + 192, left.begin() + static_cast<std::ptrdiff_t>(y * 192)));
      CHECK(std::equal(row + 192, row + 384, right.begin() + static_cast<std::ptrdiff_t>(y * 192)));
    }
  }
}

TEST_CASE("JPEG: markers among the tables that tiles share say nothing") {
  const Picture picture = make_stained_picture(64, 48, 3);
  const JpegOptions options{.horizontal = 1, .vertical = 1, .without_tables = true};
  // By other names than JFIF's, so that nothing in the tile speaks against the tag.
  const Bytes tile = with_identifiers(encode_jpeg(picture, options), letters);
  TileFile file(directory_of({tile}, rgb_tag));
  file.tiff.directories[0].set_bytes(347, with_adobe(with_jfif(encode_jpeg_tables(options)), 1));
  const Bytes whole = encode_jpeg(picture, {.horizontal = 1, .vertical = 1});
  CHECK(file.read() == decode_jpeg_rgb(whole, true).data);
}

TEST_CASE("JPEG under the tag RGB: YCbCr 4:4:4 as libjpeg writes it without a marker is YCbCr, and its RGB stays RGB") {
  const Picture picture = make_stained_picture(64, 48, 11);
  const auto error = [&picture](const Pixels& pixels) {
    REQUIRE(pixels.size() == picture.data.size());
    long sum = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i) sum += std::abs(int{pixels[i]} - int{picture.data[i]});
    return static_cast<double>(sum) / static_cast<double>(pixels.size());
  };
  for (const bool shared : {false, true}) {
    CAPTURE(shared);
    for (const bool is_rgb : {false, true}) {
      CAPTURE(is_rgb);
      JpegOptions options{.coding = is_rgb ? Coding::rgb : Coding::ycbcr,
                          .horizontal = 1,
                          .vertical = 1,
                          .quality = 90,
                          .without_tables = shared};
      TileFile file(directory_of({with_identifiers(encode_jpeg(picture, options), from_1)}, rgb_tag));
      if (shared) file.tiff.directories[0].set_bytes(347, encode_jpeg_tables(options));
      options.without_tables = false;
      const Bytes whole = encode_jpeg(picture, options);
      const Pixels pixels = file.read();
      CHECK(pixels == decode_jpeg_rgb(whole, is_rgb).data);
      CHECK(3 * error(pixels) < error(decode_jpeg_rgb(whole, !is_rgb).data));  // the colours that were meant
      CHECK(Slide::open(file.write())->info().warnings.empty());
    }
  }
}

TEST_CASE("JPEG: four components are colours and alpha where the slide says so, and inks where Adobe's marker does") {
  const Picture picture = make_picture(64, 48, 4, 4);
  const Bytes tile = encode_jpeg(picture, {.coding = Coding::unknown});
  CHECK(TileFile(directory_of({tile}, rgb_tag, jpeg, 4)).read() == rgb_of(decode_jpeg_components(tile)));
  CHECK(TileFile(directory_of({tile}, rgb_tag)).error().find("4 components, and SamplesPerPixel says 3") !=
        std::string::npos);
  for (const int transform : {0, 2}) {
    CHECK(TileFile(directory_of({with_adobe(tile, transform)}, rgb_tag, jpeg, 4))
              .error()
              .ends_with("PhotometricInterpretation says RGB, the JPEG frame's Adobe marker four inks"));
  }
}

TEST_CASE("tags that say how YCbCr is sampled count for nothing: the frame does") {
  const Picture picture = make_stained_picture(64, 48, 5);
  const Bytes tile = encode_jpeg(picture);
  const Pixels expected = decode_jpeg_rgb(tile).data;
  for (const std::uint64_t factor : {1, 2, 4}) {
    TileFile file(directory_of({tile}, ycbcr_tag));
    file.tiff.directories[0].set(530, short_, {factor, factor}).set_short(531, factor == 2 ? 2 : 1);
    CHECK(file.read() == expected);
    CHECK(Slide::open(file.write())->info().warnings.empty());
  }
}

TEST_CASE("another range and other weights of YCbCr than JFIF's are told") {
  const Picture picture = make_stained_picture(64, 48, 6);
  const Bytes tile = encode_jpeg(picture);
  const auto warnings = [&](std::uint16_t tag, const std::vector<std::uint64_t>& numbers) {
    TileFile file(directory_of({tile}, ycbcr_tag));
    file.tiff.directories[0].set(tag, rational, numbers);
    const auto slide = Slide::open(file.write());
    CHECK(read_level_rgb(*slide) == decode_jpeg_rgb(tile).data);
    return slide->info().warnings;
  };
  CHECK(warnings(532, {0, 255, 128, 255, 128, 255}).empty());
  CHECK(warnings(532, {0, 255, 0, 255, 0, 255}).empty());
  CHECK(warnings(532, {16, 235, 128, 240, 128, 240}).at(0).starts_with("ReferenceBlackWhite"));
  CHECK(warnings(529, {1, 0, 0}).at(0).starts_with("YCbCrCoefficients"));
}

TEST_CASE("JPEG 2000: the component transform makes RGB, whatever compression and tag say") {
  const Picture picture = make_picture(64, 48, 3, 7);
  for (const bool irreversible : {false, true}) {
    const Bytes tile = encode_jpeg2000(picture, {.irreversible = irreversible});
    const Picture decoded = decode_jpeg2000_rgb(tile);
    for (const std::uint64_t compression : {33003, 33004, 33005, 34712}) {
      for (const std::uint64_t tag : {rgb_tag, ycbcr_tag}) {
        CAPTURE(compression);
        CAPTURE(tag);
        const TileFile file(directory_of({tile}, tag, compression));
        CHECK(file.read() == decoded.data);
        const Pixels luminance = irreversible ? decode_jpeg2000_component(tile, 0).data : formula(decoded);
        CHECK(read_level(*Slide::open(file.write())) == luminance);
      }
    }
  }
}

TEST_CASE("JPEG 2000 without a component transform: sampling, then the compression of Aperio, then the tag") {
  const Picture picture = make_picture(64, 48, 3, 8);
  const Bytes tile = encode_jpeg2000(picture, {.irreversible = false, .colour_transform = false});
  const auto read = [](const Bytes& bytes, std::uint64_t tag, std::uint64_t compression, bool aperio = false) {
    TileFile file(directory_of({bytes}, tag, compression));
    if (aperio) file.tiff.directories[0].set_text(270, "Aperio Image Library v12.0.15 \r\n64x48 J2K/YUV16 Q=70");
    return file.read();
  };
  CHECK(read(tile, ycbcr_tag, 33003) == converted(picture));
  CHECK(read(tile, rgb_tag, 33003) == picture.data);
  CHECK(read(tile, rgb_tag, 33003, true) == converted(picture));
  CHECK(read(tile, ycbcr_tag, 33003, true) == converted(picture));
  // Any image of the file says whose it is.
  TileFile file(directory_of({tile}, rgb_tag, 33003));
  file.tiff.directories.push_back(stripped_directory(8, 8, 8, 1));
  file.tiff.directories[1].tiles = {Bytes(64)};
  file.tiff.directories[1].set_text(270, "Aperio Image Library v12.0.15 \r\nlabel 8x8");
  CHECK(file.read() == converted(picture));
  CHECK(read(tile, ycbcr_tag, 34712) == converted(picture));
  CHECK(read(tile, rgb_tag, 34712) == picture.data);
  for (const std::uint64_t tag : {rgb_tag, ycbcr_tag}) CHECK(read(tile, tag, 33005) == picture.data);
  // What is sampled apart is no RGB.
  Picture repeated = picture;
  for (std::size_t i = 3; i < repeated.data.size(); i += 6) {
    repeated.data[i + 1] = repeated.data[i - 2];
    repeated.data[i + 2] = repeated.data[i - 1];
  }
  const Bytes apart = encode_jpeg2000(picture, {.irreversible = false, .colour_transform = false, .chroma_dx = 2});
  for (const std::uint64_t compression : {33003, 33004, 33005, 34712}) {
    for (const std::uint64_t tag : {rgb_tag, ycbcr_tag}) CHECK(read(apart, tag, compression) == converted(repeated));
  }
}

TEST_CASE("JPEG 2000: a tile-part's header overrules the main header's component transform") {
  const Picture picture = make_picture(64, 48, 3, 12);
  const auto check = [&](const Bytes& tile, std::uint64_t tag, Colour colour, const Pixels& pixels) {
    const TileFile file(directory_of({tile}, tag, 34712));
    CHECK(file.read() == pixels);
    const auto slide = Slide::open(file.write());
    CHECK(read_level(*slide) == (colour == Colour::ycbcr ? sample(picture, 0) : formula(picture)));
    CHECK(colour_of_tiles(*slide, 0) == colour);
  };
  const Bytes plain = with_coding_in_tile(encode_jpeg2000(picture, {.irreversible = false, .colour_transform = false}));
  check(plain, ycbcr_tag, Colour::ycbcr, converted(picture));
  check(plain, rgb_tag, Colour::rgb, picture.data);
  const Bytes transformed = with_coding_in_tile(encode_jpeg2000(picture, {.irreversible = false}));
  for (const std::uint64_t tag : {rgb_tag, ycbcr_tag}) check(transformed, tag, Colour::rgb, picture.data);
}

TEST_CASE("JPEG 2000: a JP2 file that says sYCC overrules the tag, and one of other colours is a bad tile") {
  const Picture picture = make_picture(64, 48, 3, 9);
  const auto as = [](Bytes file, int kind) {
    const Bytes box = bytes_of({"colr\1\0\0\0\0\0\x10", 11});
    const auto found = std::search(file.begin(), file.end(), box.begin(), box.end());
    REQUIRE(found != file.end());
    found[10] = static_cast<std::byte>(kind);
    return file;
  };
  constexpr int unknown = 0, cmyk = 12, ycck = 13, lab = 14, srgb = 16, grey = 17, sycc = 18;
  const Bytes plain = encode_jpeg2000(picture, {.irreversible = false, .colour_transform = false, .jp2 = true});
  CHECK(TileFile(directory_of({as(plain, sycc)}, rgb_tag, 34712)).read() == converted(picture));
  // Encoders write sRGB of any three components, and nothing that is known where they weren't told.
  for (const int kind : {srgb, unknown}) {
    CHECK(TileFile(directory_of({as(plain, kind)}, rgb_tag, 34712)).read() == picture.data);
    CHECK(TileFile(directory_of({as(plain, kind)}, ycbcr_tag, 34712)).read() == converted(picture));
  }
  for (const auto& [kind, text] :
       std::vector<std::pair<int, std::string>>{{cmyk, "the JP2 file's colours are CMYK"},
                                                {ycck, "the JP2 file's colours are YCCK"},
                                                {lab, "the JP2 file's colours are CIELab"},
                                                {grey, "the JP2 file is grey, and its codestream has 3 components"}}) {
    const std::string error = TileFile(directory_of({as(plain, kind)}, rgb_tag, 34712)).error();
    CHECK_MESSAGE(error.find(text) != std::string::npos, error);
  }
  const Bytes transformed = encode_jpeg2000(picture, {.irreversible = false, .jp2 = true});
  CHECK(TileFile(directory_of({as(transformed, sycc)}, rgb_tag, 34712)).error().find("its colours can't be told") !=
        std::string::npos);
}

TEST_CASE("what the first tile holds is told beside what the slide says") {
  using Both = std::pair<Colour, Colour>;
  const Picture picture = make_stained_picture(64, 48, 11);
  const auto colours = [](const std::vector<Bytes>& tiles, std::uint64_t tag, std::uint64_t compression = jpeg) {
    const TileFile file(directory_of(tiles, tag, compression));
    const auto slide = Slide::open(file.write());
    return Both{slide->info().levels[0].colour, colour_of_tiles(*slide, 0)};
  };
  const Bytes apart = encode_jpeg(picture), even = encode_jpeg(picture, {.horizontal = 1, .vertical = 1});
  CHECK(colours({with_jfif(apart)}, rgb_tag) == Both{Colour::rgb, Colour::ycbcr});
  CHECK(colours({with_jfif(apart)}, ycbcr_tag) == Both{Colour::ycbcr, Colour::ycbcr});
  CHECK(colours({with_adobe(even, 0)}, ycbcr_tag) == Both{Colour::ycbcr, Colour::rgb});
  CHECK(colours({even}, rgb_tag) == Both{Colour::rgb, Colour::ycbcr});
  CHECK(colours({encode_jpeg(picture, {.coding = Coding::rgb})}, rgb_tag) == Both{Colour::rgb, Colour::rgb});
  // The first that is there, and what can't be told.
  CHECK(colours({{}, with_jfif(apart), even}, rgb_tag) == Both{Colour::rgb, Colour::ycbcr});
  CHECK(colours({{}}, rgb_tag) == Both{Colour::rgb, Colour::rgb});
  CHECK(colours({with_jfif(with_adobe(even, 0))}, rgb_tag) == Both{Colour::rgb, Colour::rgb});
  CHECK(colours({Bytes(100)}, ycbcr_tag) == Both{Colour::ycbcr, Colour::ycbcr});
  for (const bool transform : {false, true}) {
    const Bytes tile = encode_jpeg2000(picture, {.colour_transform = transform});
    CHECK(colours({tile}, ycbcr_tag, 34712) == Both{Colour::ycbcr, transform ? Colour::rgb : Colour::ycbcr});
    CHECK(colours({tile}, rgb_tag, 34712) == Both{Colour::rgb, Colour::rgb});
  }
}

TEST_CASE("an image beside the slide has the colours that its JPEG says, or is refused") {
  const Picture picture = make_stained_picture(64, 48, 10);
  const auto beside = [&](const Bytes& strip, std::uint64_t tag) {
    TileFile file(directory_of({encode_jpeg(picture)}, ycbcr_tag));
    TestDirectory other = stripped_directory(64, 48, 48, 3).set_short(259, jpeg).set_short(262, tag);
    other.set_text(270, "label");
    other.tiles = {strip};
    file.tiff.directories.push_back(other);
    return Slide::open(file.write())->read_associated(0).pixels;
  };
  const Bytes even = encode_jpeg(picture, {.horizontal = 1, .vertical = 1});
  const Bytes apart = encode_jpeg(picture);
  const Bytes one_table = with_tables(even, {0, 0, 0}), unnamed = with_identifiers(one_table, from_0);
  const Bytes rgb = with_identifiers(encode_jpeg(picture, {.coding = Coding::rgb}), from_1);
  CHECK(beside(unnamed, rgb_tag) == decode_jpeg_rgb(one_table, true).data);
  CHECK(beside(with_identifiers(even, from_0), rgb_tag) == decode_jpeg_rgb(even).data);
  CHECK(beside(rgb, rgb_tag) == decode_jpeg_rgb(rgb, true).data);
  CHECK(beside(even, rgb_tag) == decode_jpeg_rgb(even).data);
  CHECK(beside(with_jfif(even), rgb_tag) == decode_jpeg_rgb(even).data);
  CHECK(beside(with_jfif(apart), rgb_tag) == decode_jpeg_rgb(apart).data);
  CHECK(beside(with_adobe(even, 0), ycbcr_tag) == decode_jpeg_rgb(even, true).data);
  CHECK_THROWS_WITH_AS(beside(with_jfif(with_adobe(even, 0)), rgb_tag),
                       doctest::Contains("label can't be read: its colours can't be told"), SlideError);
}

TEST_CASE("levels may have tiles of other sizes and another compression than level 0") {
  const Picture large = make_stained_picture(128, 96, 13), small = reduced(large, 2);
  TileFile file(tiled_directory(128, 96, 64, 48, 3));
  for (const int y : {0, 48}) {
    for (const int x : {0, 64}) file.tiff.directories[0].tiles.push_back(to_bytes(cut(large, x, y, 64, 48)));
  }
  TestDirectory level = tiled_directory(64, 48, 32, 16, 3).set_short(259, jpeg);
  Pixels expected(64 * 48 * 3);
  for (int y = 0; y < 48; y += 16) {
    for (int x = 0; x < 64; x += 32) {
      const Bytes tile = with_jfif(encode_jpeg(cut(small, x, y, 32, 16), {.quality = 95}));
      level.tiles.push_back(tile);
      const Picture decoded = decode_jpeg_rgb(tile);
      for (int row = 0; row < 16; ++row) {
        std::copy_n(decoded.at(0, row), 32 * 3, expected.begin() + ((y + row) * 64 + x) * 3);
      }
    }
  }
  file.tiff.directories.push_back(level);
  CHECK(file.read(0) == large.data);
  CHECK(file.read(1) == expected);
}

TEST_CASE("an ICC profile in JPEG tiles alone isn't read, and the line about sRGB says so") {
  const Picture picture = make_stained_picture(64, 48, 1);
  const Bytes bare = encode_jpeg(picture);
  const Bytes with_profile = with_segment(bare, bytes_of({"\xFF\xE2\0\x10"
                                                          "ICC_PROFILE\0\1\1",
                                                          18}));
  const auto lines = [](const Bytes& tile) {
    const TileFile file(directory_of({tile}, ycbcr_tag));
    return Slide::open(file.write(), {.to_srgb = true})->info().warnings;
  };
  using Lines = std::vector<std::string>;
  const std::string begins = "its colours aren't converted to sRGB: ";
  CHECK(lines(bare) == Lines{begins + "it has no ICC profile"});
  const Lines told = {begins + "the ICC profile in its JPEG tiles isn't read, and it has no other"};
  CHECK(lines(with_profile) == told);
  CHECK(lines(with_jfif(with_profile)) == told);
  // Other segments of that marker, and a tile that ends within one.
  CHECK(lines(with_segment(bare, bytes_of({"\xFF\xE2\0\x06MPF\0", 8}))) == Lines{begins + "it has no ICC profile"});
}
