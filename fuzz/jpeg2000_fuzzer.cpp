// Any bytes are flagged by the code that the GPU runs, or decoded as OpenJPEG does without finding damage.
//
// The first byte chooses the slide's colour, the tile's size, and luminance or RGB. The rest is the tile.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <vector>

#include "slide/jpeg2000_decoder.hpp"
#include "tests/support/host_coders/jpeg2000_decoder.hpp"

namespace {

using namespace slidestream;

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
bool decode_on_cpu(std::span<const std::byte> bytes, const TileDemand& demand, std::vector<std::uint8_t>& pixels) {
  Level level;
  level.tile_width = demand.width;
  level.tile_height = demand.height;
  level.colour = demand.colour;
  const LevelCoding coding;
  const auto pixel = static_cast<std::int64_t>(demand.format.pixel_bytes());
  pixels.assign(static_cast<std::size_t>(pixel * demand.width * demand.height), 0);
  const HostPixels view{pixels.data(), pixel * demand.width, demand.width, demand.height, demand.format};
  try {
    decode_jpeg2000({no_slide(), 0, level, coding, 0, demand, 0, 0, view}, bytes);
  } catch (const TileError&) {
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  constexpr Colour colours[] = {Colour::ycbcr, Colour::rgb, Colour::grey, Colour::grey_inverted};
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  static cuda::HostJpeg2000Decoder decoder;
  static std::vector<std::uint8_t> pixels;
  cuda::Jpeg2000Header header;
  if (cuda::parse_jpeg2000_header(cuda::find_jpeg2000_codestream(bytes), header) != cuda::Jpeg2000Reason::none)
    return 0;
  // The tile has the frame's size, or the image's edge goes through it; or it doesn't fit by a pixel.
  constexpr std::int64_t more[][2] = {{0, 0}, {1, 0}, {1, 1}, {-1, -1}};
  const auto& across = more[data[0] >> 2 & 3U];
  const auto& down = more[data[0] >> 4 & 3U];
  const std::int64_t width = header.parameters.width, height = header.parameters.height;
  const TileDemand demand{colours[data[0] & 3U], width + across[0],
                          height + down[0],      width + across[1],
                          height + down[1],      (data[0] & 64U) != 0 ? rgb_format : luminance_format};
  if (demand.width < 1 || demand.height < 1) return 0;
  if (width * height > 1 << 14) return 0;  // take long, and go the same way on the host
  if (decoder.decode(bytes, demand) != cuda::Jpeg2000Reason::none) return 0;
  require(decode_on_cpu(bytes, demand, pixels));
  const auto pixel = static_cast<std::int64_t>(demand.format.pixel_bytes());
  const std::size_t row_bytes = demand.format.pixel_bytes() * decoder.width();
  for (std::uint32_t y = 0; y < decoder.height(); ++y) {
    const auto row = decoder.pixels().subspan(y * row_bytes, row_bytes);
    require(std::equal(row.begin(), row.end(), pixels.begin() + y * pixel * demand.width));
  }
  return 0;
}
