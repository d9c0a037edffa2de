// Any pixels are encoded by the code that the GPU runs as libjpeg-turbo encodes them, byte for byte.
//
// The first byte chooses grey or RGB and how rows are aligned, then come quality, size of tiles, width and height. The
// rest is the pixels, repeated as often as it takes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <slidestream/image.hpp>
#include <vector>

#include "codec/tile_encoder.hpp"
#include "tests/support/host_coders/jpeg_encoder.hpp"

namespace {

using namespace slidestream;

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 6) return 0;
  const PixelFormat format = (data[0] & 1U) != 0 ? rgb_format : luminance_format;
  const int quality = 1 + data[1] % 100;
  const std::uint32_t side = 16 * (1 + data[2] % 6U);
  const Size image{1 + data[3] % 160, 1 + data[4] % 160};
  const std::size_t padding = data[0] >> 1 & 7U;
  const auto pitch = static_cast<std::size_t>(image.width) * format.pixel_bytes() + padding;
  std::vector<std::byte> pixels(pitch * static_cast<std::size_t>(image.height));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::byte>(data[5 + i % (size - 5)]);
  const ConstPixelView<MemorySpace::host> view{
      pixels.data(), static_cast<std::ptrdiff_t>(pitch), {0, 0, image.width, image.height}, image, format};
  const auto expected = make_tile_encoder(TileCompression::jpeg, format, quality, static_cast<int>(side));
  cuda::HostJpegEncoder encoder({.tiles = 1, .side = side, .format = format}, quality);
  require(std::ranges::equal(encoder.tables(), expected->tables()));
  for (std::int64_t y = 0; y < image.height; y += side) {
    for (std::int64_t x = 0; x < image.width; x += side) {
      const Rect held{x, y, std::min<std::int64_t>(side, image.width - x),
                      std::min<std::int64_t>(side, image.height - y)};
      const auto* const first = view.row<const std::byte>(y) + static_cast<std::size_t>(x) * format.pixel_bytes();
      const std::vector<std::byte> tile =
          encoder.encode(view, {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)});
      require(tile == expected->encode({first, view.pitch, held, image, format}));
    }
  }
  return 0;
}
