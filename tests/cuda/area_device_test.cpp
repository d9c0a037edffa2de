// Pixels that stand for areas, made on a GPU, against the host's.
#include <doctest/doctest.h>

#include <random>
#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>
#include <vector>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "support/gpu.hpp"

using namespace slidestream;
using namespace slidestream::test;
using runtime::cuda::DeviceMemory;

TEST_CASE("a GPU makes of areas what the host makes, to the bit") {
  if (gpus_or_skip() == 0) return;
  std::mt19937 random(8);
  for (const std::int64_t factor : {65537, 66848, 100000, 131072, 131073, 163840, 262144, 999999, 256 * 65536}) {
    CAPTURE(factor);
    const Size size = {factor / 65536 * 5 + 1211, factor / 65536 * 3 + 700};
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(size.width * size.height * 3));
    for (std::uint8_t& sample : pixels) {
      const auto noise = static_cast<std::uint8_t>(random() >> 24);
      sample = factor % 2 == 0 ? noise : noise < 128 ? 0 : 255;
    }
    const Size small = AreaResampler::size_of(size, factor);
    const Rect whole = {0, 0, small.width, small.height};
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(small.width * small.height * 3));
    const auto* const from = reinterpret_cast<const std::byte*>(pixels.data());
    resample_area(
        PixelView<MemorySpace::host>{reinterpret_cast<std::byte*>(expected.data()), small.width * 3, whole, small,
                                     rgb_format},
        ConstPixelView<MemorySpace::host>{from, size.width * 3, {0, 0, size.width, size.height}, size, rgb_format},
        factor);
    DeviceMemory source(pixels.size());
    DeviceMemory made(expected.size());
    runtime::cuda::copy_to_device(source.bytes().data(), from, pixels.size());
    const runtime::cuda::Stream stream;
    // In two parts, of which the lower one has the rows that it needs and no more.
    const std::int64_t half = small.height / 2;
    for (const Rect& rect : {Rect{0, 0, small.width, half}, Rect{0, half, small.width, small.height - half}}) {
      if (rect.height == 0) continue;
      const Rect held = AreaResampler::source_of(rect, factor);
      const Rect rows = {0, held.y, size.width, held.height};
      resample_area(PixelView<MemorySpace::device>{made.bytes().data() + rect.y * small.width * 3, small.width * 3,
                                                   rect, small, rgb_format},
                    ConstPixelView<MemorySpace::device>{source.bytes().data() + rows.y * size.width * 3, size.width * 3,
                                                        rows, size, rgb_format},
                    factor, stream.get());
    }
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    std::vector<std::uint8_t> found(expected.size());
    SLIDESTREAM_CUDA(cudaMemcpy(found.data(), made.bytes().data(), found.size(), cudaMemcpyDeviceToHost));
    CHECK(found == expected);
    CHECK_THROWS_AS(
        resample_area(
            PixelView<MemorySpace::device>{made.bytes().data(), small.width * 3, whole, small, rgb_format},
            ConstPixelView<MemorySpace::device>{
                source.bytes().data(), size.width * 3, {0, 0, size.width, size.height - 257}, size, rgb_format},
            factor, stream.get()),
        std::invalid_argument);
  }
}
