#include <doctest/doctest.h>

#include <algorithm>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "slide/codestream.hpp"
#include "slide/test_images.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

constexpr std::uint64_t grey_photometric = 1, white_is_zero = 0, rgb_photometric = 2, ycbcr_photometric = 6;

class OneTile {
 public:
  OneTile(const Bytes& tile, std::uint64_t compression, std::uint64_t photometric, int samples = 3) {
    tiff.directories.push_back(tiled_directory(64, 48, 64, 48, samples));
    tiff.directories[0].set_short(259, compression).set_short(262, photometric);
    tiff.directories[0].tiles = {tile};
  }

  std::filesystem::path write() const { return folder.write("slide.svs", tiff.bytes()); }
  std::vector<std::uint8_t> read() const { return read_level(*Slide::open(write())); }
  Colour colour() const { return Slide::open(write())->info().levels[0].colour; }
  std::string error() const { return read_error(write()); }

  TemporaryFolder folder;
  TestTiff tiff;
};

std::size_t find_marker(const Bytes& stream, unsigned marker) {
  for (std::size_t i = 0; i + 1 < stream.size(); ++i) {
    if (stream[i] == std::byte{0xFF} && stream[i + 1] == static_cast<std::byte>(marker)) return i;
  }
  FAIL("no such marker");
  return 0;
}

void check_bad(const Bytes& tile, const std::string& cause) {
  const std::string error = OneTile(tile, 33005, rgb_photometric).error();
  CAPTURE(error);
  CHECK(error.find("level 0 tile 0 (column 0, row 0): ") != std::string::npos);
  CHECK(error.find(cause) != std::string::npos);
  CHECK(error.find('\n') == std::string::npos);
}

/// A grey codestream of one code-block of HTJ2K, with `packet` as its tile-part's data.
Bytes high_throughput(const std::vector<int>& packet, int layers = 1) {
  const int length = 14 + static_cast<int>(packet.size());
  std::vector<int> all = {0xFF, 0x4F, 0xFF, 0x50, 0, 8, 0, 2, 0, 0, 0, 0};  // CAP of part 15, behind SIZ in the end
  const std::vector<int> siz = {0xFF, 0x51, 0, 41, 0x40, 0, 0, 0,  0, 64, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 0,
                                0,    0,    0, 64, 0,    0, 0, 48, 0, 0,  0, 0, 0, 0,  0, 0, 0, 1, 7, 1, 1};
  all.insert(all.begin() + 2, siz.begin(), siz.end());
  for (const int byte :
       {0xFF, 0x52, 0, 12, 0, 0, 0, layers, 0, 0,      4, 4, 0x40, 1,   0xFF, 0x5C, 0, 4, 0x40, 0x40,  // COD, QCD
        0xFF, 0x90, 0, 10, 0, 0, 0, 0,      0, length, 0, 1, 0xFF, 0x93}) {
    all.push_back(byte);
  }
  all.insert(all.end(), packet.begin(), packet.end());
  all.insert(all.end(), {0xFF, 0xD9});
  Bytes bytes;
  for (const int byte : all) bytes.push_back(static_cast<std::byte>(byte));
  return bytes;
}

}  // namespace

TEST_CASE("irreversible colour transform: component 0, untransformed") {
  const Picture picture = make_picture(64, 48, 3, 1);
  const Bytes tile = encode_jpeg2000(picture);
  const std::vector<std::uint8_t> y = decode_jpeg2000_component(tile, 0).data;
  CHECK(y != formula(decode_jpeg2000_rgb(tile)));  // the test can tell
  for (const std::uint64_t compression : {33004, 33005, 34712}) {
    CHECK(OneTile(tile, compression, rgb_photometric).read() == y);
  }
}

TEST_CASE("reversible or no colour transform: the formula of red, green and blue") {
  const Picture picture = make_picture(64, 48, 3, 2);
  for (const std::uint64_t compression : {33004, 33005, 34712}) {
    const Bytes lossless = encode_jpeg2000(picture, {.irreversible = false});
    CHECK(OneTile(lossless, compression, rgb_photometric).read() == formula(picture));
    const Bytes separate = encode_jpeg2000(picture, {.colour_transform = false});
    CHECK(OneTile(separate, compression, rgb_photometric).read() == formula(decode_jpeg2000_rgb(separate)));
  }
}

TEST_CASE("33003 and 34712 with photometric YCbCr: component 0, unless the codestream has transformed colours") {
  const Picture picture = make_picture(64, 48, 3, 3);
  for (const int dx : {1, 2}) {
    const Bytes tile = encode_jpeg2000(picture, {.colour_transform = false, .chroma_dx = dx});
    const std::vector<std::uint8_t> y = decode_jpeg2000_component(tile, 0).data;
    CHECK(OneTile(tile, 33003, ycbcr_photometric).read() == y);
    CHECK(OneTile(tile, 34712, ycbcr_photometric).read() == y);
  }
  const Bytes tile = encode_jpeg2000(picture, {.irreversible = false});
  CHECK(OneTile(tile, 33003, ycbcr_photometric).read() == formula(picture));
  CHECK(OneTile(tile, 34712, ycbcr_photometric).read() == formula(picture));
  CHECK(OneTile(tile, 34712, ycbcr_photometric).colour() == Colour::ycbcr);
  // 33004 and 33005 are RGB, whatever the tag says.
  CHECK(OneTile(tile, 33005, ycbcr_photometric).colour() == Colour::rgb);
  CHECK(OneTile(tile, 33004, ycbcr_photometric).read() == formula(picture));
}

TEST_CASE("subsampled components without a colour transform are chroma") {
  const Picture picture = make_picture(64, 48, 3, 4);
  const Bytes tile = encode_jpeg2000(picture, {.irreversible = false, .colour_transform = false, .chroma_dx = 2});
  CHECK(OneTile(tile, 33005, rgb_photometric).read() == sample(picture, 0));
}

TEST_CASE("grey, inverted grey, and extra samples") {
  const Picture grey = make_picture(64, 48, 1, 5);
  const Bytes tile = encode_jpeg2000(grey, {.irreversible = false});
  CHECK(OneTile(tile, 34712, grey_photometric, 1).read() == grey.data);
  CHECK(OneTile(tile, 33005, rgb_photometric, 3).read() == grey.data);
  std::vector<std::uint8_t> inverted = grey.data;
  for (std::uint8_t& v : inverted) v = static_cast<std::uint8_t>(255 - v);
  CHECK(OneTile(tile, 34712, white_is_zero, 1).read() == inverted);
  const Picture four = make_picture(64, 48, 4, 6);
  const Bytes with_alpha = encode_jpeg2000(four, {.irreversible = false, .colour_transform = false});
  CHECK(OneTile(with_alpha, 34712, rgb_photometric, 4).read() == formula(four));
  // No marker of JPEG 2000 calls four components inks: the fourth is dropped, whatever the tag counts.
  CHECK(OneTile(with_alpha, 34712, rgb_photometric, 3).read() == formula(four));
  CHECK(OneTile(with_alpha, 34712, grey_photometric, 1).error().find("codestream has 4 components") !=
        std::string::npos);
}

TEST_CASE("JP2 files are told by their first bytes") {
  const Picture picture = make_picture(64, 48, 3, 7);
  const Bytes wrapped = encode_jpeg2000(picture, {.irreversible = false, .jp2 = true});
  REQUIRE(wrapped[0] == std::byte{0});
  CHECK(OneTile(wrapped, 34712, rgb_photometric).read() == formula(picture));
  check_bad(Bytes(wrapped.begin(), wrapped.begin() + 60), "JP2");
}

TEST_CASE("zeros may follow a codestream, also one whose last tile-part reaches up to EOC") {
  const Picture picture = make_picture(64, 48, 3, 7);
  for (const bool jp2 : {false, true}) {
    CAPTURE(jp2);
    Bytes tile = encode_jpeg2000(picture, {.irreversible = false, .jp2 = jp2});
    const Bytes sot = {std::byte{0xFF}, std::byte{0x90}, std::byte{0}, std::byte{10}};
    const auto part = std::search(tile.begin(), tile.end(), sot.begin(), sot.end());
    REQUIRE(part != tile.end());
    std::fill_n(part + 6, 4, std::byte{0});
    if (jp2) {
      const Bytes name = {std::byte{'j'}, std::byte{'p'}, std::byte{'2'}, std::byte{'c'}};
      const auto box = std::search(tile.begin(), tile.end(), name.begin(), name.end());
      REQUIRE(box != tile.end());
      std::fill_n(box - 4, 4, std::byte{0});  // up to the end of the file
    }
    for (int i = 0; i < 3; ++i, tile.emplace_back()) {
      CHECK(OneTile(tile, 34712, rgb_photometric).read() == formula(picture));
    }
  }
}

TEST_CASE("several tiles in one codestream") {
  const Picture picture = make_picture(64, 48, 3, 8);
  const Bytes tile = encode_jpeg2000(picture, {.irreversible = false, .tile_size = 20});
  CHECK(OneTile(tile, 33005, rgb_photometric).read() == formula(picture));
}

TEST_CASE("damaged codestreams are bad") {
  const Picture picture = make_picture(64, 48, 3, 9);
  const Bytes tile = encode_jpeg2000(picture);
  SUBCASE("cut anywhere before EOC") {
    std::size_t fine = 0;
    for (std::size_t length = 1; length + 2 < tile.size(); length += 1 + length / 40) {
      const Bytes part(tile.begin(), tile.begin() + static_cast<std::ptrdiff_t>(length));
      fine += OneTile(part, 33005, rgb_photometric).error().empty() ? 1 : 0;
    }
    CHECK(fine == 0);
  }
  SUBCASE("a tile-part too few") {
    const Bytes several = encode_jpeg2000(picture, {.tile_size = 32});
    std::size_t last = 0;
    for (std::size_t i = 0; i + 3 < several.size(); ++i) {
      if (several[i] == std::byte{0xFF} && several[i + 1] == std::byte{0x90} && several[i + 3] == std::byte{10})
        last = i;
    }
    Bytes shorter(several.begin(), several.begin() + static_cast<std::ptrdiff_t>(last));
    shorter.insert(shorter.end(), tile.end() - 2, tile.end());  // EOC
    check_bad(shorter, "before the last tile-part");
  }
  SUBCASE("tile-parts too many") {
    // All but the first are empty.
    const auto with_parts = [&](unsigned parts, unsigned said) {
      Bytes changed = tile;
      changed[find_marker(tile, 0x90) + 11] = static_cast<std::byte>(said);
      changed.resize(changed.size() - 2);  // EOC
      for (unsigned i = 1; i < parts; ++i) {
        for (const unsigned value : {0xFFU, 0x90U, 0U, 10U, 0U, 0U, 0U, 0U, 0U, 14U, i & 255U, said, 0xFFU, 0x93U}) {
          changed.push_back(static_cast<std::byte>(value));
        }
      }
      changed.insert(changed.end(), tile.end() - 2, tile.end());
      return changed;
    };
    for (const unsigned said : {0U, 3U}) CHECK(OneTile(with_parts(3, said), 33005, rgb_photometric).error().empty());
    CHECK(OneTile(with_parts(255, 255), 33005, rgb_photometric).error().empty());
    check_bad(with_parts(3, 2), "a JPEG 2000 tile has 3 tile-parts, and its headers say 2");
    check_bad(with_parts(3, 4), "before the last tile-part");
    // As OpenJPEG writes them: the count modulo 256.
    check_bad(with_parts(256 + 72, 72), "more than 255 tile-parts, which the standard doesn't allow");
    // Nothing says how many there are.
    CHECK(OneTile(with_parts(256, 0), 33005, rgb_photometric).error().empty());
  }
  SUBCASE("not a codestream") { check_bad(Bytes(100, std::byte{0x41}), "neither like"); }
  SUBCASE("another size") { check_bad(encode_jpeg2000(make_picture(64, 47, 3, 1)), "decodes to 64 x 47"); }
  SUBCASE("absurd sizes in the header") {
    Bytes changed = tile;
    const std::size_t siz = find_marker(tile, 0x51);
    for (std::size_t i = 0; i < 4; ++i) changed[siz + 6 + i] = std::byte{0x7F};
    check_bad(changed, "JPEG 2000 codestream of 33422846 tiles");
    changed = tile;
    changed[siz + 9] = changed[siz + 25] = std::byte{65};
    check_bad(changed, "decodes to 65 x 48");
  }
  SUBCASE("samples that aren't 8 bits unsigned") {
    check_bad(encode_jpeg2000(picture, {.precision = 12}), "12 bits");
    check_bad(encode_jpeg2000(picture, {.is_signed = true}), "signed");
  }
  SUBCASE("parts that would take gigabytes before a sample is decoded") {
    // As if it were large, but for its data.
    Bytes large = tile;
    const std::size_t siz = find_marker(tile, 0x51);
    for (const std::size_t side : {6, 10, 22, 26}) large[siz + 2 + side] = std::byte{16};
    const std::size_t cod = find_marker(tile, 0x52);
    Bytes small_blocks = large;
    small_blocks[cod + 10] = small_blocks[cod + 11] = std::byte{0};
    check_bad(small_blocks, "code-blocks, supported are up to");
    const auto levels = std::to_integer<std::uint8_t>(large[cod + 9]);
    large[cod + 3] = static_cast<std::byte>(std::to_integer<int>(large[cod + 3]) + levels + 1);
    large[cod + 4] |= std::byte{1};
    large.insert(large.begin() + static_cast<std::ptrdiff_t>(cod) + 14, std::size_t{levels} + 1U, std::byte{0x11});
    check_bad(large, "precincts and");
  }
  SUBCASE("a colour transform of components of different sizes, also where the first alone is wanted") {
    Bytes changed = tile;
    changed[find_marker(tile, 0x51) + 44] = std::byte{2};
    check_bad(changed, "components of different sizes");
  }
  SUBCASE("markers that OpenJPEG copies for each tile, or looks into") {
    const Bytes sod = {std::byte{0xFF}, std::byte{0x93}};
    const auto in_tile = std::search(tile.begin(), tile.end(), sod.begin(), sod.end()) - tile.begin();
    for (const std::ptrdiff_t at : {static_cast<std::ptrdiff_t>(find_marker(tile, 0x52)), in_tile}) {
      const auto with = [&](unsigned marker) {
        Bytes changed = tile;
        const Bytes segment = {
            std::byte{0xFF}, static_cast<std::byte>(marker), std::byte{0}, std::byte{4}, std::byte{0}, std::byte{0}};
        changed.insert(changed.begin() + at, segment.begin(), segment.end());
        return changed;
      };
      for (const unsigned marker : {0x74U, 0x75U, 0x77U}) check_bad(with(marker), "component transforms of part 2");
      check_bad(with(0x78), "the marker FF78, which isn't supported");
      check_bad(with(0x30), "the marker FF30, which isn't supported");
    }
  }
  SUBCASE("more bands than steps of quantisation") {
    const std::string cause = "32 wavelet levels, and 10 quantisation steps, which are too few";
    const std::size_t cod = find_marker(tile, 0x52), qcd = find_marker(tile, 0x5C);
    Bytes changed = tile;
    changed[cod + 9] = std::byte{32};
    check_bad(changed, cause);
    Bytes reversible = encode_jpeg2000(picture, {.irreversible = false});
    reversible[find_marker(reversible, 0x52) + 9] = std::byte{32};
    check_bad(reversible, cause);
    // A tile's levels go before those of the main header.
    Bytes in_tile = with_coding_in_tile(tile);
    in_tile[find_marker(in_tile, 0x90) + 12 + 9] = std::byte{32};
    check_bad(in_tile, cause);
    // A component's own steps go before those of all.
    const auto with_steps = [&](unsigned component) {
      const Bytes qcc = {std::byte{0xFF},      std::byte{0x5D}, std::byte{0},   std::byte{5},
                         std::byte(component), std::byte{0x40}, std::byte{0x40}};
      Bytes made = tile;
      made.insert(made.begin() + static_cast<std::ptrdiff_t>(find_marker(tile, 0x90)), qcc.begin(), qcc.end());
      return made;
    };
    check_bad(with_steps(2), "3 wavelet levels, and 1 quantisation steps, which are too few");
    CHECK_NOTHROW(parse_codestream(with_steps(3)));  // of no component
    // Derived steps are enough for all bands, and steps without a band are allowed.
    const auto length = std::to_integer<std::ptrdiff_t>(changed[qcd + 3]);
    const auto segment = changed.begin() + static_cast<std::ptrdiff_t>(qcd);
    changed[qcd + 3] = std::byte{5};
    changed[qcd + 4] = (changed[qcd + 4] & std::byte{0xE0}) | std::byte{1};
    changed.erase(segment + 7, segment + 2 + length);
    CHECK_NOTHROW(parse_codestream(changed));
    changed = tile;
    changed[cod + 9] = std::byte{1};
    CHECK_NOTHROW(parse_codestream(changed));
  }
  SUBCASE("no EOC") { check_bad(Bytes(tile.begin(), tile.end() - 2), "without EOC"); }
}

TEST_CASE("HTJ2K is read, but not with what OpenJPEG 2.5.0 isn't safe with") {
  const Bytes sound = high_throughput({0});
  CHECK(OneTile(sound, 33005, grey_photometric, 1).read() == std::vector<std::uint8_t>(std::size_t{64} * 48, 128));
  SUBCASE("stuffed bits that aren't 0") {
    check_bad(high_throughput({0xE7, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 7, 0}), "a marker lies in them");
    check_bad(high_throughput({0, 0xFF, 0x90}), "a marker lies in them");
    check_bad(high_throughput({0, 0xFF}), "end with FF");
    Bytes up_to_eoc = high_throughput({0, 0xFF});
    up_to_eoc[find_marker(up_to_eoc, 0x90) + 9] = std::byte{0};
    check_bad(up_to_eoc, "end with FF");
  }
  SUBCASE("SOP and EPH") {
    check_bad(high_throughput({0, 0xFF, 0x92}), "SOP or EPH");
    check_bad(high_throughput({0xFF, 0x91, 0, 4, 0, 0, 0}), "SOP or EPH");
  }
  SUBCASE("several layers") { check_bad(high_throughput({0, 0}, 2), "HTJ2K of 2 layers, supported is 1"); }
  SUBCASE("code-blocks of both kinds") {
    Bytes changed = sound;
    const Bytes coc = {std::byte{0xFF}, std::byte{0x53}, std::byte{0}, std::byte{9}, std::byte{0}, std::byte{0},
                       std::byte{0},    std::byte{4},    std::byte{4}, std::byte{0}, std::byte{1}};
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(find_marker(sound, 0x5C)), coc.begin(), coc.end());
    check_bad(changed, "code-blocks of HTJ2K and others");
  }
  SUBCASE("a CAP whose length isn't that of its bits") {
    Bytes changed = sound;
    changed[find_marker(sound, 0x50) + 4] = std::byte{0x80};
    check_bad(changed, "capabilities (CAP) are damaged");
  }
}
