// The GPU's levels against the definition.
#include <doctest/doctest.h>

#include "cuda/pyramid/device_pyramid.hpp"
#include "cuda/pyramid_runs.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "support/gpu.hpp"

using namespace slidestream;
using namespace slidestream::cuda;
using runtime::cuda::DeviceMemory;

namespace {

void check_case(const test::PyramidCase& now) {
  CAPTURE(now.image.size.width);
  CAPTURE(now.image.size.height);
  CAPTURE(now.image.format.channels);
  CAPTURE(now.layout.levels());
  CAPTURE(now.most_rows);
  const std::int64_t channels = now.image.format.channels;
  std::vector<DeviceMemory> levels;
  std::vector<PixelView<MemorySpace::device>> views;
  for (int level = 1; level < now.layout.levels(); ++level) {
    const Size size = now.layout.size(level);
    const DeviceMemory& memory = levels.emplace_back(static_cast<std::size_t>(size.width * size.height * channels));
    views.push_back(
        {memory.bytes().data(), size.width * channels, {0, 0, size.width, size.height}, size, now.image.format});
  }
  const std::size_t bytes = DevicePyramid::device_bytes(now.layout, now.image.format, now.most_rows);
  const DeviceMemory memory(std::max<std::size_t>(bytes, 1));
  DevicePyramid pyramid(now.layout, now.image.format, now.most_rows, memory.bytes());
  // Bands lie in the same memory, one after the other.
  const DeviceMemory band(static_cast<std::size_t>(now.image.size.width * channels * now.most_rows));
  const runtime::cuda::Stream stream;
  std::int64_t y = 0;
  for (const std::int64_t rows : now.bands) {
    const auto part = now.image.rows(y, rows);
    SLIDESTREAM_CUDA(cudaMemcpyAsync(band.bytes().data(), part.data, static_cast<std::size_t>(part.pitch * rows),
                                     cudaMemcpyHostToDevice, stream.get()));
    pyramid.enqueue({band.bytes().data(), part.pitch, part.rect, part.image, part.format}, views, stream.get());
    y += rows;
  }
  SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
  const auto expected = test::plain_pyramid(now.image, now.layout.levels(), false);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    CAPTURE(i);
    test::WholeImage found(expected[i + 1].size, now.image.format);
    SLIDESTREAM_CUDA(
        cudaMemcpy(found.bytes.data(), levels[i].bytes().data(), found.bytes.size(), cudaMemcpyDeviceToHost));
    CHECK(found == expected[i + 1]);
  }
}

}  // namespace

TEST_CASE("levels that the GPU makes of bands of any height are those of the definition") {
  if (test::gpus_or_skip() == 0) return;
  std::mt19937 random(1);
  for (int run = 0; run < 40; ++run) check_case(test::random_pyramid_case(random, run % 10 == 0 ? 700 : 90));
}
