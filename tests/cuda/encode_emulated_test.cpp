// The encoder's kernels, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "cuda/encode/encode_batch.hpp"
#include "cuda/encode_batches.hpp"

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/encode/encode_kernel.cuh"
#include "cuda/encode/pack_kernel.cuh"
#pragma GCC diagnostic pop

using namespace slidestream;
using namespace slidestream::cuda;
using test::Content;

namespace {

template <class Kernel>
void execute(unsigned blocks, unsigned threads, const Kernel& kernel) {
  for (unsigned block = 0; block < blocks; ++block) test::emulator::run_block(block, blocks, threads, kernel);
}

/// \param shift  of the output from a multiple of 16 bytes.
test::EncodedBatch encode(const JpegEncoderLimits& limits, int quality, const test::PixelImage& image,
                          const std::vector<JpegTilePosition>& tiles, std::size_t capacity, std::size_t shift) {
  const EncodeTables tables(limits.format, quality, static_cast<int>(limits.side), limits.subsampling);
  const CodingTables coding[2] = {tables.luminance, tables.chrominance};
  const ConstHostView view = image.view();
  EncodeTask task = make_encode_task(limits, {view.data, view.pitch, view.rect, view.image, view.format}, tiles);
  test::EncodedBatch batch;
  batch.offsets.resize(tiles.size() + 1);
  batch.output.assign(capacity + 2 * test::encoded_border + 16, test::untouched);
  std::vector<FourWords> scratch(limits.scratch_bytes / BandRecord::unit_bytes + 1);
  std::vector<BandRecord> bands(tiles.size() * task.grid.bands);
  std::vector<std::uint32_t> lengths(tiles.size());
  EncodeCounters counters{};
  // A place in the output whose distance from a multiple of 16 bytes is the wanted one.
  const std::size_t odd = reinterpret_cast<std::uintptr_t>(batch.output.data()) % 16;
  REQUIRE(odd == 0);
  task.tiles = tiles.data();
  task.header = reinterpret_cast<const std::uint8_t*>(tables.header.data());
  task.header_bytes = static_cast<std::uint32_t>(tables.header.size());
  task.tables = coding;
  task.scratch = scratch[0].words;
  task.counters = &counters;
  task.bands = bands.data();
  task.lengths = lengths.data();
  task.offsets = batch.offsets.data();
  task.scratch_units = &batch.scratch_units;
  task.output = reinterpret_cast<std::uint8_t*>(batch.output.data()) + test::encoded_border + shift;
  task.output_capacity = capacity;
  const auto count = static_cast<unsigned>(tiles.size());
  with_band(limits, [&](auto kind) {
    using Band = decltype(kind);
    execute(std::min(count, 3U), Band::threads, [&] { encode_tiles<Band>(task); });
  });
  execute(1, offset_threads, [&] { sum_lengths(task); });
  const auto warps = static_cast<unsigned>(bands.size());
  execute((warps + pack_warps - 1) / pack_warps, 32 * pack_warps, [&] { pack_bands(task); });
  CHECK(scratch.back().words[0] == 0);
  batch.output.erase(batch.output.begin(), batch.output.begin() + static_cast<std::ptrdiff_t>(shift));
  return batch;
}

}  // namespace

TEST_CASE("the encoder's kernels make libjpeg-turbo's tiles, of all sizes of tiles and images") {
  test::check_any_encoded(encode, 24, 8, 2);
}

TEST_CASE("the encoder's kernels put bands together that are larger than their window") {
  std::mt19937 random(2);
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    test::check_encoded(encode, test::image_to_encode(random, {260, 256}, format, Content::noise, 0), 256, 100, 0);
    test::check_encoded(encode, test::image_to_encode(random, {256, 16}, format, Content::extreme, 0), 256, 100, 3);
  }
}

TEST_CASE("tiles that don't fit the output are left out, and those that do are whole") {
  test::check_short_output(encode, rgb_format);
}

TEST_CASE("scratch memory that is too small is told, and nothing is written beyond it") {
  test::check_short_scratch(encode, luminance_format);
}
