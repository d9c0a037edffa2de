// The made-up GPU's JPEG encoder: what runs on it sees the tiles that a real one makes.
#include <doctest/doctest.h>

#include <random>

#include "cuda/encode/jpeg_encoder.hpp"
#include "cuda/encode_cases.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"

using namespace slidestream;
using namespace slidestream::cuda;

TEST_CASE("a made-up GPU encodes JPEG tiles, and says when they don't fit") {
  std::mt19937 random(1);
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    const auto image = test::image_to_encode(random, {70, 50}, format, test::Content::noise, 3);
    std::vector<JpegTilePosition> tiles = test::tile_grid(image.image, 32);
    JpegEncoderLimits limits{.tiles = 6, .side = 32, .format = format};
    limits.scratch_bytes = most_scratch_bytes(limits);
    const runtime::cuda::DeviceMemory memory(JpegEncoder::device_bytes(limits));
    JpegEncoder encoder(limits, 85, memory.bytes());
    const auto expected = make_tile_encoder(TileCompression::jpeg, format, 85, 32);
    std::vector<std::byte> bytes(tiles.size() * most_tile_bytes(limits));
    std::vector<std::uint64_t> offsets(tiles.size() + 1);
    std::uint32_t units = 0;
    const runtime::cuda::Stream stream;
    const ConstHostView view = image.view();
    const auto encode = [&](std::size_t capacity) {
      encoder.enqueue({view.data, view.pitch, view.rect, view.image, view.format}, tiles,
                      {std::span(bytes).first(capacity), offsets, &units}, stream.get());
      SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
      return fits(limits, offsets.back(), capacity, units);
    };
    CHECK(encode(bytes.size()));
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const auto tile = std::span(bytes).subspan(offsets[i], offsets[i + 1] - offsets[i]);
      CHECK(std::ranges::equal(tile, test::expected_tile(*expected, view, 32, tiles[i])));
    }
    CHECK(!encode(offsets.back() - 1));
    CHECK_THROWS_AS(encoder.enqueue({view.data, view.pitch, view.rect, view.image, view.format}, tiles,
                                    {bytes, std::span(offsets).first(1), &units}, stream.get()),
                    std::length_error);
  }
}
