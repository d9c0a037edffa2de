#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/jp2_file.hpp"
#include "cuda/jpeg2000/codestream_header.hpp"

using namespace slidestream;

namespace {

using Bytes = std::vector<std::byte>;

Bytes number(std::uint64_t value, int length) {
  Bytes bytes;
  for (int i = length - 1; i >= 0; --i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  return bytes;
}

Bytes joined(const std::vector<Bytes>& parts) {
  Bytes bytes;
  for (const Bytes& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

Bytes box(const std::string& type, const Bytes& contents) {
  Bytes name(4);
  std::transform(type.begin(), type.end(), name.begin(), [](char letter) { return static_cast<std::byte>(letter); });
  return joined({number(8 + contents.size(), 4), name, contents});
}

/// Enumerated colours, such as sRGB.
Bytes colours(unsigned kind) { return box("colr", joined({number(1, 1), number(0, 2), number(kind, 4)})); }

/// A codestream of so many components, as far as its first fields.
Bytes codestream(unsigned components) { return joined({number(0xFF4FFF51, 4), Bytes(36), number(components, 2)}); }

/// A file of these boxes in its header.
Bytes file_of(const std::vector<Bytes>& header, unsigned components = 3) {
  return joined({box("jP  ", number(0x0D0A870A, 4)), box("ftyp", Bytes(12)), box("jp2h", joined(header)),
                 box("jp2c", codestream(components))});
}

bool is_for_devices(const Bytes& file) { return !cuda::find_jpeg2000_codestream(file).empty(); }

}  // namespace

TEST_CASE("A JP2 file has a codestream, and a device decodes it where its colours say nothing") {
  const Bytes file = file_of({box("ihdr", Bytes(14)), colours(16)});
  REQUIRE(is_jp2_file(file));
  const std::optional<Jp2File> read = read_jp2_file(file);
  REQUIRE(read);
  CHECK(std::ranges::equal(read->codestream, codestream(3)));
  CHECK_FALSE(read->says_grey);
  CHECK_FALSE(read->says_ycbcr);
  CHECK(read->unsupported == nullptr);
  CHECK(std::ranges::equal(cuda::find_jpeg2000_codestream(file), codestream(3)));
  // A bare codestream is what it is.
  CHECK_FALSE(is_jp2_file(codestream(3)));
  CHECK(std::ranges::equal(cuda::find_jpeg2000_codestream(codestream(3)), codestream(3)));
}

TEST_CASE("Colours of a JP2 file are all that its boxes say") {
  struct Case {
    std::vector<unsigned> kinds;
    bool grey;
    bool ycbcr;
    std::string unsupported;
    bool is_for_devices;  // of one component
  };
  for (const Case& each : std::vector<Case>{{{17}, true, false, "", true},
                                            {{17, 16}, true, false, "", true},
                                            {{16, 17}, true, false, "", true},
                                            {{18}, false, true, "", false},
                                            {{0}, false, false, "", false},
                                            {{16, 14, 12}, false, false, "CIELab", false},
                                            {{13}, false, false, "YCCK", false},
                                            {{12}, false, false, "CMYK", false}}) {
    std::vector<Bytes> boxes;
    for (const unsigned kind : each.kinds) boxes.push_back(colours(kind));
    CAPTURE(each.kinds.front());
    const Bytes file = file_of(boxes, 1);
    const std::optional<Jp2File> read = read_jp2_file(file);
    REQUIRE(read);
    CHECK(read->says_grey == each.grey);
    CHECK(read->says_ycbcr == each.ycbcr);
    CHECK(std::string(read->unsupported == nullptr ? "" : read->unsupported) == each.unsupported);
    CHECK(is_for_devices(file) == each.is_for_devices);
    // Grey of three components is refused, whatever another box says.
    if (each.grey) CHECK_FALSE(is_for_devices(file_of(boxes, 3)));
  }
}

TEST_CASE("Palettes and channels of a JP2 file are the CPU's to judge") {
  const auto channels = [](unsigned first, unsigned second) {
    return box("cdef", joined({number(2, 2), number(0, 2), number(0, 2), number(first, 2), number(1, 2), number(0, 2),
                               number(second, 2)}));
  };
  for (const Bytes& header : {box("pclr", Bytes(8)), box("cmap", Bytes(4)), channels(1, 2), channels(2, 1)}) {
    const Bytes file = file_of({colours(16), header});
    const std::optional<Jp2File> read = read_jp2_file(file);
    REQUIRE(read);
    CHECK(read->has_palette == (header == box("pclr", Bytes(8))));
    CHECK(read->reorders_channels == (header == channels(2, 1)));
    CHECK_FALSE(is_for_devices(file));
  }
}

TEST_CASE("What follows the codestream of a JP2 file need not be a box") {
  const Bytes file = file_of({colours(16)});
  for (const Bytes& rest : {Bytes(1), Bytes(7), Bytes(8), Bytes(9), Bytes(20, std::byte{0xFF}), number(9, 4),
                            box("free", Bytes(3)), joined({box("free", Bytes(3)), Bytes(1)})}) {
    CAPTURE(rest.size());
    const Bytes longer = joined({file, rest});
    const std::optional<Jp2File> read = read_jp2_file(longer);
    REQUIRE(read);
    CHECK(std::ranges::equal(read->codestream, codestream(3)));
    CHECK(is_for_devices(longer));
  }
  // One that is a header is read.
  const Bytes with_late = joined({file, box("jp2h", box("pclr", Bytes(8)))});
  const std::optional<Jp2File> late = read_jp2_file(with_late);
  REQUIRE(late);
  CHECK(late->has_palette);
  CHECK_FALSE(read_jp2_file(joined({file, box("jp2h", number(7, 4))})));
}

TEST_CASE("The box of a JP2 file's codestream may say a length of 8 bytes, or none") {
  const Bytes head = joined({box("jP  ", number(0x0D0A870A, 4)), box("jp2h", colours(16))});
  const Bytes name = box("jp2c", {});
  const Bytes type(name.begin() + 4, name.end());
  const Bytes long_box = joined({number(1, 4), type, number(16 + codestream(3).size(), 8), codestream(3)});
  const Bytes last_box = joined({number(0, 4), type, codestream(3)});
  for (const Bytes& file : {joined({head, long_box}), joined({head, long_box, Bytes(1)}), joined({head, last_box})}) {
    const std::optional<Jp2File> read = read_jp2_file(file);
    REQUIRE(read);
    CHECK(std::ranges::equal(read->codestream, codestream(3)));
  }
}

TEST_CASE("Boxes of a JP2 file that are cut make it none") {
  const Bytes file = file_of({colours(16)});
  const std::size_t codestream_at = file.size() - codestream(3).size() - 8;
  for (std::size_t length = 12; length < file.size(); ++length) {
    CAPTURE(length);
    const Bytes part(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
    // Between boxes nothing is cut, and the codestream is missing.
    const bool between = length == 12 || length == 32 || length == codestream_at;
    const std::optional<Jp2File> read = read_jp2_file(part);
    CHECK(read.has_value() == between);
    if (read) CHECK(read->codestream.empty());
    CHECK_FALSE(is_for_devices(part));
  }
  for (const Bytes& header : {box("colr", {}), box("colr", joined({number(1, 1), number(0, 4)})), box("cdef", {}),
                              box("cdef", joined({number(1, 2), number(0, 4)})), number(7, 4)}) {
    CHECK_FALSE(read_jp2_file(file_of({header})));
    CHECK_FALSE(is_for_devices(file_of({header})));
  }
  // A profile isn't read.
  CHECK(read_jp2_file(file_of({box("colr", number(2, 1))})));
}
