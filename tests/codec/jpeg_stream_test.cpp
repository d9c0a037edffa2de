// Streams of JPEG without what isn't picture.
#include "codec/jpeg_stream.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "codec/jpeg_compressor.hpp"

using namespace slidestream;

namespace {

using Bytes = std::vector<std::byte>;

/// A tile of noise, with its tables and a JFIF header.
Bytes whole_jpeg(JpegColour colour) {
  constexpr int side = 48;
  std::mt19937 random(1);
  std::vector<std::uint8_t> pixels(std::size_t{side} * side * 3);
  for (std::uint8_t& sample : pixels) sample = static_cast<std::uint8_t>(random());
  std::vector<const std::uint8_t*> rows;
  for (int y = 0; y < side; ++y) rows.push_back(pixels.data() + std::size_t{3} * side * static_cast<std::size_t>(y));
  JpegCompressor compressor(colour, 90, side);
  const auto bytes = compressor.compress_file(rows, side);
  return {bytes.begin(), bytes.end()};
}

Bytes picture_of(const Bytes& stream) {
  Bytes found;
  append_picture(found, stream);
  return found;
}

Bytes bytes_of(std::initializer_list<int> numbers) {
  Bytes bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}

/// The stream with something behind its first two bytes.
Bytes with(const Bytes& stream, const Bytes& more) {
  Bytes bytes = stream;
  bytes.insert(bytes.begin() + 2, more.begin(), more.end());
  return bytes;
}

}  // namespace

TEST_CASE("a stream that is picture alone is as it was, and says what its frame is") {
  const Bytes stream = whole_jpeg(JpegColour::ycbcr_422);
  Bytes found = bytes_of({1, 2, 3});
  const JpegContent content = append_picture(found, stream);
  CHECK((Bytes(found.begin() + 3, found.end()) == stream));
  CHECK(content.quantisation);
  CHECK(content.huffman);
  JpegFrame frame{.baseline = true, .precision = 8, .width = 48, .height = 48, .components = 3};
  frame.sampling = {{{2, 1}, {1, 1}, {1, 1}}};
  CHECK(content.frame == frame);
  const JpegContent tables = append_picture(found, bytes_of({0xFF, 0xD8, 0xFF, 0xD9}));
  CHECK(tables.frame == JpegFrame{});
  CHECK(!tables.quantisation);
}

TEST_CASE("what names, sampling and tables of a frame's components say is told") {
  const auto marks_of = [](JpegColour colour) {
    Bytes found;
    return append_picture(found, whole_jpeg(colour)).marks;
  };
  // Whole files have a JFIF header, whatever is in them.
  const JpegMarks ycbcr{.jfif = true, .called_123 = true, .quantised_apart = true};
  CHECK(marks_of(JpegColour::ycbcr_444) == ycbcr);
  JpegMarks halved = ycbcr;
  halved.sampled_apart = true;
  CHECK(marks_of(JpegColour::ycbcr_420) == halved);
  CHECK(marks_of(JpegColour::rgb) == JpegMarks{.jfif = true, .called_012 = true});
}

TEST_CASE("comments, data of applications and what follows the end are left out, but for what says colours") {
  const Bytes stream = whole_jpeg(JpegColour::ycbcr_420);
  for (const Bytes& other :
       {bytes_of({0xFF, 0xFE, 0, 4, 1, 2}), bytes_of({0xFF, 0xE1, 0, 2}), bytes_of({0xFF, 0xFF, 0xFF, 0xEF, 0, 3, 9}),
        bytes_of({0xFF, 0xE0, 0, 4, 'J', 'F'}), bytes_of({0xFF, 0xEE, 0, 7, 'A', 'd', 'o', 'b', 'e'})}) {
    CHECK((picture_of(with(stream, other)) == stream));
  }
  const Bytes adobe = with(stream, bytes_of({0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 1}));
  CHECK((picture_of(adobe) == adobe));
  Bytes more = stream;
  for (const char c : std::string("more")) more.push_back(static_cast<std::byte>(c));
  CHECK((picture_of(more) == stream));
}

TEST_CASE("a stream cut anywhere is refused, or gets an end, and nothing is read outside it") {
  const Bytes stream = whole_jpeg(JpegColour::ycbcr_444);
  std::size_t refused = 0;
  for (std::size_t length = 0; length < stream.size(); ++length) {
    // A block of its own, so that sanitizers see what lies behind it.
    const Bytes cut(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(length));
    try {
      const Bytes found = picture_of(cut);
      REQUIRE(found.size() >= length);
      REQUIRE(std::equal(cut.begin(), cut.end(), found.begin()));
      REQUIRE(found.back() == std::byte{0xD9});
    } catch (const TileError&) {
      ++refused;
    }
  }
  CHECK(refused > 300);  // most cuts in the header
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    Bytes damaged = stream;
    for (int k = 0; k < 3; ++k)
      damaged[random() % std::min<std::size_t>(damaged.size(), 700)] = static_cast<std::byte>(random());
    try {
      const Bytes found = picture_of(damaged);
      REQUIRE(found.size() <= damaged.size() + 2);
    } catch (const TileError&) {
      ++refused;
    }
  }
}
