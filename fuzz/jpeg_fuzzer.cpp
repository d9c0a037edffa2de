// Any bytes are flagged by the code that the GPU runs, or decoded as libjpeg-turbo does without finding damage.
//
// The first byte chooses the slide's colour, the tile's size, luminance or RGB, and whether there are JPEGTables: then
// two bytes with their length and the tables come next. The rest is the tile.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <vector>

#include "cuda/jpeg/jpeg_header.hpp"
#include "slide/jpeg_decoder.hpp"
#include "tests/support/host_coders/jpeg_decoder.hpp"

namespace {

using namespace slidestream;

constexpr std::uint32_t most_pixels = 1U << 18;

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

/// The decoder asks the slide nothing, but wants a reference.
const Slide& no_slide() {
  alignas(Slide) static std::byte storage[sizeof(Slide)];
  return reinterpret_cast<const Slide&>(storage);
}

/// The tile as the CPU's decoder has it; false when it is bad.
bool decode_on_cpu(std::span<const std::byte> bytes, std::span<const std::byte> tables, const TileDemand& demand,
                   std::vector<std::uint8_t>& pixels) {
  Level level;
  level.tile_width = demand.width;
  level.tile_height = demand.height;
  level.colour = demand.colour;
  LevelCoding coding;
  coding.jpeg_tables.assign(tables.begin(), tables.end());
  const int channels = demand.format.channels;
  pixels.assign(static_cast<std::size_t>(channels * demand.width * demand.height), 0);
  const HostPixels view{pixels.data(), channels * demand.width, demand.width, demand.height, demand.format};
  try {
    JpegDecoder().decode({no_slide(), 0, level, coding, 0, demand, 0, 0, view}, bytes);
  } catch (const TileError&) {
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  constexpr Colour colours[] = {Colour::ycbcr, Colour::rgb, Colour::grey, Colour::grey_inverted};
  auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  std::span<const std::byte> tables;
  if ((data[0] & 0x40U) != 0 && bytes.size() >= 2) {
    const std::size_t length = std::to_integer<std::size_t>(bytes[0]) << 8 | std::to_integer<std::size_t>(bytes[1]);
    bytes = bytes.subspan(2);
    tables = bytes.first(std::min(length, bytes.size()));
    bytes = bytes.subspan(tables.size());
    // A slide with damaged ones fails before any tile is looked at, and too few bytes are none.
    if (!jpeg_tables_hold_a_table(tables.size())) tables = {};
    if (!tables.empty() && !damage_of_jpeg_tables(tables).empty()) return 0;
  }
  cuda::JpegTableReferences references;
  if (cuda::parse_jpeg_tables(tables, references) != cuda::JpegReason::none) return 0;
  static cuda::HostJpegDecoder decoder;
  static std::vector<std::uint8_t> pixels;
  cuda::JpegHeader header;
  if (cuda::parse_jpeg_header(bytes, references, header) != cuda::JpegReason::none) return 0;
  if (std::uint64_t{header.width} * header.height > most_pixels) return 0;
  // The tile has the frame's size, or the image's edge goes through it; or it doesn't fit by a pixel.
  constexpr std::int64_t more[][2] = {{0, 0}, {1, 0}, {1, 1}, {-1, -1}};
  const auto& across = more[data[0] >> 2 & 3U];
  const auto& down = more[data[0] >> 4 & 3U];
  const TileDemand demand{colours[data[0] & 3U],
                          header.width + across[0],
                          header.height + down[0],
                          header.width + across[1],
                          header.height + down[1],
                          (data[0] & 0x80U) != 0 ? rgb_format : luminance_format,
                          size % 2 != 0};
  if (demand.width < 1 || demand.height < 1) return 0;
  if (decoder.decode(bytes, references, demand) != cuda::JpegReason::none) return 0;
  require(decode_on_cpu(bytes, tables, demand, pixels));
  for (std::uint32_t y = 0; y < decoder.height(); ++y) {
    const std::size_t row_bytes = decoder.width() * demand.format.pixel_bytes();
    const auto row = decoder.pixels().subspan(y * row_bytes, row_bytes);
    require(std::equal(row.begin(), row.end(), pixels.begin() + y * demand.width * demand.format.channels));
  }
  return 0;
}
