// Tiles put together in a device's memory, against the host's.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include <slidestream/stitch.hpp>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "stitch/band_cases.hpp"
#include "support/gpu.hpp"
#include "support/made_up_gpus.hpp"
#include "support/pixel_images.hpp"
#include "support/wide.hpp"

using namespace slidestream;
using namespace slidestream::test;
using runtime::cuda::DeviceMemory;

namespace {

void upload(const DeviceMemory& to, const void* from) {
  runtime::cuda::copy_to_device(to.bytes().data(), from, to.bytes().size());
}

std::vector<std::byte> download(const DeviceMemory& from) {
  std::vector<std::byte> bytes(from.bytes().size());
  SLIDESTREAM_CUDA(cudaMemcpy(bytes.data(), from.bytes().data(), bytes.size(), cudaMemcpyDeviceToHost));
  return bytes;
}

}  // namespace

TEST_CASE("stitching: a device puts together what the host does, to the bit, whatever arrives when") {
  if (gpus_or_skip() == 0) return;
  std::mt19937 random(11);
  const runtime::cuda::Stream stream;
  const bool is_small = made_up_gpus() && !is_wide();
  for (int round = 0; round < (is_small ? 40 : 60); ++round) {
    CAPTURE(round);
    const BandCase tiles = is_small ? random_band(random, 60, 48) : random_band(random, 90, 70);
    const StitchPlan& plan = tiles.plan;
    StitchBand host(plan, tiles.output, tiles.weights);
    DeviceStitchBand device(plan, tiles.output, tiles.weights);
    PixelImage expected(plan.image, StitchBand::format(tiles.output));
    const DeviceMemory made(expected.bytes.size());
    std::vector<DeviceMemory> values;  // each stays until the kernels are through
    std::optional<std::int64_t> first_wrong;

    std::vector<std::int64_t> order(tiles.values.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::shuffle(order.begin(), order.end(), random);
    std::int64_t rows = 0;
    while (rows < plan.image.height) {
      std::erase_if(order, [&](std::int64_t number) {
        const StitchTile tile = plan.tile(number);
        REQUIRE(host.has_room(tile.row) == device.has_room(tile.row));
        if (!host.has_room(tile.row)) return false;
        const std::vector<float>& own = tiles.values[static_cast<std::size_t>(number)];
        if (own.empty()) {
          host.arrived(tile, false);
          device.skip(tile, stream.get());
          return true;
        }
        const bool finite = host.put(tile, own).sound(tiles.output);
        host.arrived(tile, finite);
        if (!finite) first_wrong = std::min(first_wrong.value_or(number), number);
        values.emplace_back(own.size() * sizeof(float));
        upload(values.back(), own.data());
        device.put(tile, std::span(reinterpret_cast<const float*>(values.back().bytes().data()), own.size()),
                   stream.get());
        return true;
      });
      REQUIRE(host.ready() == device.ready());
      REQUIRE(host.ready() > rows);
      const std::int64_t until = std::uniform_int_distribution<std::int64_t>(rows + 1, host.ready())(random);
      const std::int64_t middle = std::uniform_int_distribution<std::int64_t>(0, plan.image.width)(random);
      for (const Rect& rect :
           {Rect{0, rows, middle, until - rows}, Rect{middle, rows, plan.image.width - middle, until - rows}}) {
        if (rect.width == 0) continue;
        const auto at =
            expected.view().row<std::byte>(rect.y) + rect.x * static_cast<std::int64_t>(expected.format.pixel_bytes());
        const auto pitch = static_cast<std::ptrdiff_t>(expected.pitch);
        host.gather({at, pitch, rect, plan.image, expected.format});
        device.gather({made.bytes().data() + (at - expected.bytes.data()), pitch, rect, plan.image, expected.format},
                      stream.get());
      }
      rows = until;
      host.release(rows);
      device.release(rows);
    }
    const std::optional<StitchTile> wrong = device.first_wrong(stream.get());
    REQUIRE(wrong.has_value() == first_wrong.has_value());
    if (wrong) CHECK(wrong->row * plan.x.count + wrong->column == *first_wrong);
    CHECK(download(made) == expected.bytes);
  }
}

TEST_CASE("stitching: a device cuts tiles as the host does, and what doesn't fit is refused") {
  if (gpus_or_skip() == 0) return;
  std::mt19937 random(12);
  const auto in = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  const runtime::cuda::Stream stream;
  for (int round = 0; round < 40; ++round) {
    PixelImage image({in(1, 60), in(1, 50)}, rgb_format);
    for (std::byte& sample : image.bytes) sample = static_cast<std::byte>(random() >> 24);
    const Rect rect = {in(-70, 70), in(-60, 60), in(1, 90), in(1, 40)};
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(3 * rect.width * rect.height));
    cut_tile(expected, image.view(), rect);
    const DeviceMemory source(image.bytes.size());
    upload(source, image.bytes.data());
    const DeviceMemory tile(expected.size());
    const std::span to(reinterpret_cast<std::uint8_t*>(tile.bytes().data()), expected.size());
    const ConstPixelView<MemorySpace::device> rows = {source.bytes().data(), static_cast<std::ptrdiff_t>(image.pitch),
                                                      image.rect, image.image, rgb_format};
    cut_tile(to, rows, rect, stream.get());
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    const std::vector<std::byte> found = download(tile);
    CHECK(std::ranges::equal(found, std::as_bytes(std::span(expected))));
    CHECK_THROWS_AS(cut_tile(to.first(to.size() - 1), rows, rect, stream.get()), std::invalid_argument);
    ConstPixelView<MemorySpace::device> less = rows;
    less.rect.height = 0;
    CHECK_THROWS_AS(cut_tile(to, less, rect, stream.get()), std::invalid_argument);
  }
  const StitchPlan plan = plan_stitching({40, 90}, 16, 4, 1, StitchEdge::shift);
  NetworkOutput output;
  DeviceStitchBand band(plan, output, StitchWeights::tent);
  const DeviceMemory memory(std::size_t{16} * 16 * sizeof(float));
  const std::span values(reinterpret_cast<const float*>(memory.bytes().data()), 256);
  CHECK_THROWS_AS(band.put({0, 0}, values.first(255), stream.get()), std::invalid_argument);
  CHECK_THROWS_AS(band.put({plan.x.count, 0}, values, stream.get()), std::invalid_argument);
  CHECK_THROWS_AS(band.put({0, 2}, values, stream.get()), std::invalid_argument);
  CHECK_THROWS_AS(band.skip({-1, 0}, stream.get()), std::invalid_argument);
  CHECK_THROWS_AS(band.gather({memory.bytes().data(), 40, {0, 0, 40, 1}, plan.image, luminance_format}, stream.get()),
                  std::invalid_argument);
  output.channels = 17;
  CHECK_THROWS_AS(DeviceStitchBand(plan, output, StitchWeights::tent), std::invalid_argument);
}
