// Any bytes are flagged by the code that the GPU runs, or decoded as libjpeg-turbo does without finding damage.
//
// The first byte chooses the colour; the rest is the tile.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <span>
#include <vector>

#include "cuda/jpeg/host_decoder.hpp"
#include "cuda/jpeg/jpeg_header.hpp"
#include "slide/jpeg_decoder.hpp"

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
bool decode_on_cpu(std::span<const std::byte> bytes, const cuda::HostJpegDecoder& decoded, Colour colour,
                   std::vector<std::uint8_t>& pixels) {
  Level level;
  level.tile_width = decoded.width();
  level.tile_height = decoded.height();
  level.colour = colour;
  const LevelDetail detail;
  pixels.assign(decoded.luminance().size(), 0);
  const LuminanceView view{pixels.data(), level.tile_width, level.tile_width, level.tile_height};
  try {
    JpegDecoder().decode({no_slide(), 0, level, detail, 0, level.tile_width, level.tile_height, 0, 0, view}, bytes);
  } catch (const TileError&) {
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const bool rgb = (data[0] & 1U) != 0;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  static cuda::HostJpegDecoder decoder;
  static std::vector<std::uint8_t> pixels;
  cuda::JpegHeader header;
  if (cuda::parse_jpeg_header(bytes, {}, header) != cuda::JpegReason::none) return 0;
  if (std::uint64_t{header.width} * header.height > most_pixels) return 0;
  const cuda::JpegColour colour = rgb ? cuda::JpegColour::rgb : cuda::JpegColour::luminance;
  if (decoder.decode(bytes, {}, colour) != cuda::JpegReason::none) return 0;
  require(decode_on_cpu(bytes, decoder, rgb ? Colour::rgb : Colour::ycbcr, pixels));
  require(std::equal(pixels.begin(), pixels.end(), decoder.luminance().begin()));
  return 0;
}
