// The kernels that put tiles together, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <slidestream/stitch.hpp>
#include <vector>

#include "stitch/band_cases.hpp"
#include "support/pixel_images.hpp"

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/tiles/stitch.cuh"
#pragma GCC diagnostic pop

using namespace slidestream;
using namespace slidestream::cuda;

namespace {

template <class Kernel>
void run_blocks(std::uint32_t blocks, const Kernel& kernel) {
  for (unsigned block = 0; block < blocks; ++block) {
    test::emulator::run_block(block, blocks, stitch_threads, kernel);
  }
}

/// Tiles of a plan, mapped in row order, and put together by the kernels where the last two rows of them count.
template <class Sample>
std::uint32_t stitch_by_kernels(const test::BandCase& tiles, const PixelView<MemorySpace::device>& out) {
  const StitchPlan& plan = tiles.plan;
  const auto samples = static_cast<std::size_t>(plan.x.tile * plan.y.tile * tiles.output.channels);
  std::vector<Sample> kept(2 * static_cast<std::size_t>(plan.x.count) * samples, Sample{77});
  std::vector<std::uint8_t> absent(2 * static_cast<std::size_t>(plan.x.count), 0);
  const std::vector<std::uint16_t> ramp = stitch_ramp(tiles.weights, plan.x.overlap);
  std::uint32_t wrong = 0;
  for (std::int64_t number = 0; number < plan.tiles(); ++number) {
    const StitchTile tile = plan.tile(number);
    const auto place = static_cast<std::size_t>(tile.row % 2 * plan.x.count + tile.column);
    const std::vector<float>& values = tiles.values[static_cast<std::size_t>(number)];
    absent[place] = values.empty() ? 1 : 0;
    if (values.empty()) continue;
    TileValues mapped{};
    mapped.values = values.data();
    mapped.to = kept.data() + place * samples;
    mapped.absent = &absent[place];
    mapped.wrong = &wrong;
    mapped.number = static_cast<std::uint32_t>(number);
    mapped.pixels = static_cast<std::uint32_t>(plan.x.tile * plan.y.tile);
    mapped.output = tiles.output;
    mapped.refuses_outside = tiles.output.refuses_outside();
    const float factor =
        static_cast<float>(std::numeric_limits<Sample>::max()) / (tiles.output.high - tiles.output.low);
    run_blocks(blocks_across(mapped.pixels), [&] { map_tile_values<Sample>(mapped, factor); });
  }
  const std::uint32_t across = blocks_across(out.rect.width);
  const KeptTiles all = {plan.x,
                         plan.y,
                         kept.data(),
                         absent.data(),
                         ramp.data(),
                         tiles.output.channels,
                         sizeof(Sample) == 1 ? SampleType::uint8 : SampleType::uint16,
                         tiles.output.kind == NetworkOutput::Kind::classes,
                         tiles.output.ignore,
                         out.format == rgb_format ? 255U : 0U};
  run_blocks(across * static_cast<std::uint32_t>(out.rect.height),
             [&] { gather_pixels<Sample>(all, out.data, out.pitch, out.rect, across); });
  return wrong;
}

}  // namespace

TEST_CASE("kernels put together what the host does, to the bit") {
  std::mt19937 random(13);
  int compared = 0;
  for (int round = 0; round < 150; ++round) {
    const test::BandCase tiles = test::random_band(random, round % 10 == 0 ? 600 : 70, 40);
    const StitchPlan& plan = tiles.plan;
    if (plan.y.count > 3 || plan.tiles() * plan.x.tile * plan.y.tile > 40'000) continue;
    ++compared;
    CAPTURE(round);
    // A rectangle, with room behind its rows that stays as it is.
    const std::int64_t x = plan.image.width / 3;
    const std::int64_t y = plan.y.count == 3 ? plan.y.end_of(0) : plan.image.height / 4;
    const Rect rect = {x, y, plan.image.width - x, plan.image.height - y};
    const PixelFormat format = StitchBand::format(tiles.output);
    test::PixelImage expected(rect, plan.image, format);
    StitchBand band(plan, tiles.output, tiles.weights);
    std::uint32_t first_wrong = 0;
    for (std::int64_t number = 0; number < plan.tiles(); ++number) {
      const StitchTile tile = plan.tile(number);
      if (tile.row == 2 && tile.column == 0) band.release(y);
      const std::vector<float>& values = tiles.values[static_cast<std::size_t>(number)];
      const bool finite = !values.empty() && band.put(tile, values).sound(tiles.output);
      band.arrived(tile, finite);
      if (!values.empty() && !finite)
        first_wrong = std::max(first_wrong, UINT32_MAX - static_cast<std::uint32_t>(number));
    }
    band.gather(expected.view());
    test::PixelImage made(rect, plan.image, format, 3);
    std::ranges::fill(made.bytes, std::byte{9});
    const test::PixelImage before = made;
    const PixelView<MemorySpace::device> out = {made.bytes.data(), static_cast<std::ptrdiff_t>(made.pitch), rect,
                                                plan.image, format};
    const std::uint32_t wrong = kept_sample(tiles.output) == SampleType::uint8
                                    ? stitch_by_kernels<std::uint8_t>(tiles, out)
                                    : stitch_by_kernels<std::uint16_t>(tiles, out);
    CHECK(wrong == first_wrong);
    CHECK(made.same_pixels(expected, rect));
    const auto used = static_cast<std::size_t>(rect.width) * format.pixel_bytes();
    for (std::size_t at = used; at < made.bytes.size(); at += made.pitch) {
      CHECK(std::equal(
          made.bytes.begin() + static_cast<std::ptrdiff_t>(at),
          made.bytes.begin() + static_cast<std::ptrdiff_t>(std::min(at - used + made.pitch, made.bytes.size())),
          before.bytes.begin() + static_cast<std::ptrdiff_t>(at)));
    }
  }
  CHECK(compared > 60);
}

TEST_CASE("kernels cut tiles as the host does") {
  std::mt19937 random(14);
  const auto in = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 30; ++round) {
    test::PixelImage image({in(1, 60), in(1, 50)}, rgb_format);
    for (std::byte& sample : image.bytes) sample = static_cast<std::byte>(random() >> 24);
    const Rect rect = {in(-70, 70), in(-60, 60), in(1, round % 10 == 0 ? 300 : 40), in(1, 20)};
    std::vector<std::uint8_t> expected(static_cast<std::size_t>(3 * rect.width * rect.height));
    cut_tile(expected, image.view(), rect);
    std::vector<std::uint8_t> found(expected.size());
    const ConstPixelView<MemorySpace::device> rows = {image.bytes.data(), static_cast<std::ptrdiff_t>(image.pitch),
                                                      image.rect, image.image, rgb_format};
    const std::uint32_t across = blocks_across(rect.width);
    run_blocks(across * static_cast<std::uint32_t>(rect.height), [&] { cut_pixels(found.data(), rows, rect, across); });
    CHECK(found == expected);
  }
}
