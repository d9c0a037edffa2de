// The GPU's JPEG encoder against libjpeg-turbo.
#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <slidestream/error.hpp>
#include <stdexcept>

#include "cuda/encode/jpeg_encoder.hpp"
#include "cuda/encode_cases.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "support/gpu.hpp"

using namespace slidestream;
using namespace slidestream::cuda;
using runtime::cuda::DeviceMemory;
using test::Content;

namespace {

constexpr std::byte untouched{0xA5};
constexpr std::size_t border = 64;

/// What a batch comes to.
struct Encoded {
  std::vector<std::uint64_t> offsets;
  std::uint32_t scratch_units = 0;
  std::vector<std::byte> output;  ///< with a border behind it

  std::vector<std::byte> tile(std::size_t i) const {
    return {output.begin() + static_cast<std::ptrdiff_t>(offsets[i]),
            output.begin() + static_cast<std::ptrdiff_t>(offsets[i + 1])};
  }
  bool is_untouched_from(std::size_t begin) const {
    return std::all_of(output.begin() + static_cast<std::ptrdiff_t>(begin), output.end(),
                       [](std::byte b) { return b == untouched; });
  }
};

Encoded encode(const JpegEncoderLimits& limits, int quality, const test::PixelImage& image,
               const std::vector<JpegTilePosition>& tiles, std::size_t capacity, std::size_t shift = 0) {
  const DeviceMemory memory(JpegEncoder::device_bytes(limits));
  JpegEncoder encoder(limits, quality, memory.bytes());
  const DeviceMemory pixels(image.bytes.size() + 16);
  SLIDESTREAM_CUDA(
      cudaMemcpy(pixels.bytes().data() + shift, image.bytes.data(), image.bytes.size(), cudaMemcpyHostToDevice));
  const DeviceMemory output(capacity + border + 16);
  SLIDESTREAM_CUDA(cudaMemset(output.bytes().data(), 0xA5, output.bytes().size()));
  const DeviceMemory words((tiles.size() + 2) * sizeof(std::uint64_t));
  auto* const offsets = reinterpret_cast<std::uint64_t*>(words.bytes().data());
  std::vector<JpegTilePosition> listed = tiles;
  listed.emplace_back();  // no memory can't be pinned
  const runtime::cuda::PinnedRange pinned(std::as_writable_bytes(std::span(listed)));
  const runtime::cuda::Stream stream;
  const ConstHostView view = image.view();
  encoder.enqueue({pixels.bytes().data() + shift, view.pitch, view.rect, view.image, view.format},
                  {listed.data(), tiles.size()},
                  {output.bytes().subspan(shift, capacity),
                   {offsets, tiles.size() + 1},
                   reinterpret_cast<std::uint32_t*>(offsets + tiles.size() + 1)},
                  stream.get());
  SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
  Encoded batch;
  batch.offsets.resize(tiles.size() + 1);
  batch.output.resize(output.bytes().size() - shift);
  SLIDESTREAM_CUDA(cudaMemcpy(batch.offsets.data(), offsets, 8 * batch.offsets.size(), cudaMemcpyDeviceToHost));
  SLIDESTREAM_CUDA(cudaMemcpy(&batch.scratch_units, offsets + tiles.size() + 1, 4, cudaMemcpyDeviceToHost));
  SLIDESTREAM_CUDA(
      cudaMemcpy(batch.output.data(), output.bytes().data() + shift, batch.output.size(), cudaMemcpyDeviceToHost));
  return batch;
}

JpegEncoderLimits limits_for(std::uint32_t side, const PixelFormat& format, std::size_t tiles) {
  JpegEncoderLimits limits{.tiles = static_cast<std::uint32_t>(tiles), .side = side, .format = format};
  limits.scratch_bytes = most_scratch_bytes(limits);
  return limits;
}

void check_image(const test::PixelImage& image, std::uint32_t side, int quality, std::size_t shift) {
  CAPTURE(side);
  CAPTURE(quality);
  CAPTURE(image.image.width);
  CAPTURE(image.image.height);
  CAPTURE(image.format.channels);
  const auto encoder = make_tile_encoder(TileCompression::jpeg, image.format, quality, static_cast<int>(side));
  const std::vector<JpegTilePosition> tiles = test::tile_grid(image.image, side);
  const JpegEncoderLimits limits = limits_for(side, image.format, tiles.size());
  const Encoded batch = encode(limits, quality, image, tiles, tiles.size() * most_tile_bytes(limits), shift);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    CAPTURE(i);
    CHECK(batch.tile(i) == test::expected_tile(*encoder, image.view(), side, tiles[i]));
  }
  CHECK(batch.is_untouched_from(batch.offsets.back()));
}

}  // namespace

TEST_CASE("the GPU makes libjpeg-turbo's tiles, of all sizes, qualities and alignments") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(1);
  for (int run = 0; run < 40; ++run) {
    const PixelFormat format = run % 2 == 0 ? luminance_format : rgb_format;
    const auto side = static_cast<std::uint32_t>(16 * (1 + test::random_below(random, 12)));
    const Size size = test::random_size(random, 3 * side);
    const Content content = test::all_contents[random() % std::size(test::all_contents)];
    CAPTURE(static_cast<int>(content));
    check_image(test::image_to_encode(random, size, format, content, random() % 9), side,
                static_cast<int>(1 + test::random_below(random, 100)), random() % 16);
  }
}

TEST_CASE("the GPU makes libjpeg-turbo's tiles at every quality (large)") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(2);
  for (int quality = 1; quality <= 100; ++quality) {
    for (const PixelFormat& format : {luminance_format, rgb_format}) {
      for (const Content content : {Content::noise, Content::few}) {
        check_image(test::image_to_encode(random, {512, 256}, format, content, 0), 256, quality, 0);
      }
    }
  }
}

TEST_CASE("the GPU makes libjpeg-turbo's tiles of many, small and large (large)") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(3);
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    check_image(test::image_to_encode(random, {2000, 1500}, format, Content::few, 0), 16, 75, 0);
    check_image(test::image_to_encode(random, {2000, 1500}, format, Content::gradient, 0), 256, 90, 0);
    check_image(test::image_to_encode(random, {1500, 1100}, format, Content::noise, 0), 1024, 100, 0);
  }
}

TEST_CASE("tiles that don't fit the GPU encoder's output are left out, and those that do are whole") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(4);
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    const auto image = test::image_to_encode(random, {160, 96}, format, Content::noise, 0);
    const std::vector<JpegTilePosition> tiles = test::tile_grid(image.image, 32);
    JpegEncoderLimits limits = limits_for(32, format, tiles.size());
    const Encoded whole = encode(limits, 80, image, tiles, tiles.size() * most_tile_bytes(limits));
    CHECK(fits(limits, whole.offsets.back(), whole.offsets.back(), whole.scratch_units));
    const std::size_t capacity = whole.offsets[4] + 1;
    const Encoded part = encode(limits, 80, image, tiles, capacity);
    CHECK(part.offsets == whole.offsets);
    for (std::size_t i = 0; i < 4; ++i) CHECK(part.tile(i) == whole.tile(i));
    CHECK(part.is_untouched_from(whole.offsets[4]));
    CHECK(!fits(limits, part.offsets.back(), capacity, part.scratch_units));
    limits.scratch_bytes = std::uint64_t{whole.scratch_units - 1} * BandRecord::unit_bytes;
    const Encoded scarce = encode(limits, 80, image, tiles, whole.offsets.back());
    CHECK(scarce.offsets == whole.offsets);
    CHECK(!fits(limits, scarce.offsets.back(), whole.offsets.back(), scarce.scratch_units));
  }
}

TEST_CASE("the GPU's encoder takes no tiles, and refuses what it wasn't made for") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(5);
  const auto image = test::image_to_encode(random, {64, 64}, luminance_format, Content::noise, 0);
  const JpegEncoderLimits limits = limits_for(32, luminance_format, 1);
  CHECK(encode(limits, 80, image, {}, 1024).offsets == std::vector<std::uint64_t>{0});
  CHECK_THROWS_AS(encode(limits, 80, image, {{0, 0}, {0, 32}}, 1024), std::length_error);
  CHECK_THROWS_AS(encode(limits, 80, image, {{64, 0}}, 1024), std::invalid_argument);
  CHECK_THROWS_AS(JpegEncoder(limits, 80, {}), std::length_error);
}
