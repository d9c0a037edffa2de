// Dictionaries that a tile of LZMA declares, and that liblzma takes the memory of.
#include "slide/tiff/lzma_tile.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <slidestream/error.hpp>
#include <span>
#include <vector>

using namespace slidestream;

namespace {

/// "tile" as `xz` writes it, with a dictionary of 1 MiB.
const std::vector<std::uint8_t> lzma_stream = {0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46,
                                               0x02, 0x00, 0x21, 0x01, 0x10, 0x00, 0x00, 0x00, 0xa8, 0x70, 0x8e, 0x86,
                                               0x01, 0x00, 0x03, 0x74, 0x69, 0x6c, 0x65, 0x00, 0xfd, 0xbe, 0xee, 0xf3,
                                               0x92, 0xb5, 0x28, 0xae, 0x00, 0x01, 0x1c, 0x04, 0x6f, 0x2c, 0x9c, 0xc1,
                                               0x1f, 0xb6, 0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a};
constexpr std::ptrdiff_t block_at = 12, block_end = 40;
constexpr std::size_t dictionary_in_block = 4;

void check_stream(const std::vector<std::uint8_t>& stream, std::uint64_t samples = 4) {
  check_lzma_tile(std::as_bytes(std::span(stream)), samples);
}

}  // namespace

TEST_CASE("a tile of LZMA declares no larger dictionary than the presets have") {
  CHECK_NOTHROW(check_stream(lzma_stream));
  std::vector<std::uint8_t> stream = lzma_stream;
  std::size_t at = block_at + dictionary_in_block;
  SUBCASE("in its first block") {}
  SUBCASE("in a later one") {
    const std::vector<std::uint8_t> block(lzma_stream.begin() + block_at, lzma_stream.begin() + block_end);
    stream.insert(stream.begin() + block_end, block.begin(), block.end());
    CHECK_NOTHROW(check_stream(stream));
    at = block_end + dictionary_in_block;
  }
  constexpr std::uint8_t mib_64 = 28, mib_96 = 29, mib_1536 = 37;
  stream[at] = mib_64;
  CHECK_NOTHROW(check_stream(stream));
  stream[at] = mib_96;
  CHECK_THROWS_AS(check_stream(stream), TileError);
  CHECK_NOTHROW(check_stream(stream, std::uint64_t{96} << 20));
  stream[at] = mib_1536;
  CHECK_THROWS_WITH_AS(check_stream(stream),
                       "LZMA with a dictionary of 1536 MiB, supported are 64 MiB, or as much as the tile's samples",
                       TileError);
}

TEST_CASE("a tile of LZMA that ends anywhere is left to liblzma") {
  for (std::size_t size = 0; size < lzma_stream.size(); ++size) {
    CHECK_NOTHROW(check_lzma_tile(std::as_bytes(std::span(lzma_stream).first(size)), 4));
  }
}
