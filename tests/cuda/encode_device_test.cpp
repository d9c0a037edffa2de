// The GPU's JPEG encoder against libjpeg-turbo.
#include <doctest/doctest.h>

#include <random>
#include <slidestream/error.hpp>
#include <stdexcept>

#include "cuda/encode/jpeg_encoder.hpp"
#include "cuda/encode_batches.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "support/gpu.hpp"

using namespace slidestream;
using namespace slidestream::cuda;
using runtime::cuda::DeviceMemory;
using test::Content;

namespace {

test::EncodedBatch encode(const JpegEncoderLimits& limits, int quality, const test::PixelImage& image,
                          const std::vector<JpegTilePosition>& tiles, std::size_t capacity, std::size_t shift) {
  const DeviceMemory memory(JpegEncoder::device_bytes(limits));
  JpegEncoder encoder(limits, quality, memory.bytes());
  const DeviceMemory pixels(image.bytes.size() + 16);
  const DeviceMemory output(capacity + 2 * test::encoded_border + 16);
  SLIDESTREAM_CUDA(cudaMemset(output.bytes().data(), 0xA5, output.bytes().size()));
  runtime::cuda::copy_to_device(pixels.bytes().data() + shift, image.bytes.data(), image.bytes.size());
  const DeviceMemory words((tiles.size() + 2) * sizeof(std::uint64_t));
  auto* const offsets = reinterpret_cast<std::uint64_t*>(words.bytes().data());
  std::vector<JpegTilePosition> listed = tiles;
  listed.emplace_back();  // no memory can't be pinned
  const runtime::cuda::PinnedRange pinned(std::as_writable_bytes(std::span(listed)));
  const runtime::cuda::Stream stream;
  const ConstHostView view = image.view();
  encoder.enqueue({pixels.bytes().data() + shift, view.pitch, view.rect, view.image, view.format},
                  {listed.data(), tiles.size()},
                  {output.bytes().subspan(test::encoded_border + shift, capacity),
                   {offsets, tiles.size() + 1},
                   reinterpret_cast<std::uint32_t*>(offsets + tiles.size() + 1)},
                  stream.get());
  SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
  test::EncodedBatch batch;
  batch.offsets.resize(tiles.size() + 1);
  batch.output.resize(output.bytes().size() - shift);
  SLIDESTREAM_CUDA(cudaMemcpy(batch.offsets.data(), offsets, 8 * batch.offsets.size(), cudaMemcpyDeviceToHost));
  SLIDESTREAM_CUDA(cudaMemcpy(&batch.scratch_units, offsets + tiles.size() + 1, 4, cudaMemcpyDeviceToHost));
  SLIDESTREAM_CUDA(
      cudaMemcpy(batch.output.data(), output.bytes().data() + shift, batch.output.size(), cudaMemcpyDeviceToHost));
  return batch;
}

}  // namespace

TEST_CASE("the GPU makes libjpeg-turbo's tiles, of all sizes, qualities and alignments") {
  if (test::gpus_or_skip() == 0) return;
  test::check_any_encoded(encode, 40, 12, 3);
}

TEST_CASE("the GPU makes libjpeg-turbo's tiles at every quality (large)") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(2);
  for (int quality = 1; quality <= 100; ++quality) {
    for (const PixelFormat& format : {luminance_format, rgb_format}) {
      for (const Content content : {Content::noise, Content::few}) {
        test::check_encoded(encode, test::image_to_encode(random, {512, 256}, format, content, 0), 256, quality, 0);
      }
    }
  }
}

TEST_CASE("the GPU makes libjpeg-turbo's tiles of many, small and large (large)") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(3);
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    test::check_encoded(encode, test::image_to_encode(random, {2000, 1500}, format, Content::few, 0), 16, 75, 0);
    test::check_encoded(encode, test::image_to_encode(random, {2000, 1500}, format, Content::gradient, 0), 256, 90, 0);
    test::check_encoded(encode, test::image_to_encode(random, {1500, 1100}, format, Content::noise, 0), 1024, 100, 0);
  }
}

TEST_CASE("what doesn't fit the GPU encoder's output or scratch memory is told, and nothing is written beyond") {
  if (test::gpus_or_skip() == 0) return;
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    test::check_short_output(encode, format);
    test::check_short_scratch(encode, format);
  }
}

TEST_CASE("the GPU's encoder takes no tiles, and refuses what it wasn't made for") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(5);
  const auto image = test::image_to_encode(random, {64, 64}, luminance_format, Content::noise, 0);
  const JpegEncoderLimits limits = test::encoder_limits(32, luminance_format, 1);
  CHECK(encode(limits, 80, image, {}, 1024, 0).offsets == std::vector<std::uint64_t>{0});
  CHECK_THROWS_AS(encode(limits, 80, image, {{0, 0}, {0, 32}}, 1024, 0), std::length_error);
  CHECK_THROWS_AS(encode(limits, 80, image, {{64, 0}}, 1024, 0), std::invalid_argument);
  CHECK_THROWS_AS(JpegEncoder(limits, 80, {}), std::length_error);
}
