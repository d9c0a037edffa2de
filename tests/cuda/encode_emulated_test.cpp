// The encoder's kernels, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "cuda/emulator/device_words.hpp"
#include "cuda/encode/encode_batch.hpp"
#include "cuda/encode_cases.hpp"

// Kernels are compiled for a GPU elsewhere: here only what is wrong for the host counts.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include "cuda/encode/encode_kernel.cuh"
#include "cuda/encode/pack_kernel.cuh"
#pragma GCC diagnostic pop

using namespace slidestream;
using namespace slidestream::cuda;
using test::Content;

namespace {

constexpr std::byte untouched{0xA5};
constexpr std::size_t border = 64;

/// What a batch comes to.
struct Encoded {
  std::vector<std::uint64_t> offsets;
  std::uint32_t scratch_units = 0;
  std::vector<std::byte> output;  ///< with a border on both sides

  std::vector<std::byte> tile(std::size_t i) const {
    const auto begin = output.begin() + border;
    return {begin + static_cast<std::ptrdiff_t>(offsets[i]), begin + static_cast<std::ptrdiff_t>(offsets[i + 1])};
  }
  bool is_untouched(std::size_t begin, std::size_t end) const {
    return std::all_of(output.begin() + static_cast<std::ptrdiff_t>(begin),
                       output.begin() + static_cast<std::ptrdiff_t>(end), [](std::byte b) { return b == untouched; });
  }
};

template <class Kernel>
void execute(unsigned blocks, unsigned threads, const Kernel& kernel) {
  for (unsigned block = 0; block < blocks; ++block) test::emulator::run_block(block, blocks, threads, kernel);
}

/// \param shift  of the output from a multiple of 16 bytes.
Encoded encode(const JpegEncoderLimits& limits, int quality, const test::PixelImage& image,
               const std::vector<JpegTilePosition>& tiles, std::size_t capacity, std::size_t shift = 0) {
  const EncodeTables tables(limits.format, quality, static_cast<int>(limits.side));
  const CodingTables coding[2] = {tables.luminance, tables.chrominance};
  const ConstHostView view = image.view();
  EncodeTask task = make_encode_task(limits, {view.data, view.pitch, view.rect, view.image, view.format}, tiles);
  Encoded batch;
  batch.offsets.resize(tiles.size() + 1);
  batch.output.assign(capacity + 2 * border + 16, untouched);
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
  task.output = reinterpret_cast<std::uint8_t*>(batch.output.data()) + border + shift;
  task.output_capacity = capacity;
  const auto count = static_cast<unsigned>(tiles.size());
  if (limits.format.channels == 1) {
    execute(std::min(count, 3U), TileGreyBand::threads, [&] { encode_tiles<TileGreyBand>(task); });
  } else {
    execute(std::min(count, 3U), ColourBand::threads, [&] { encode_tiles<ColourBand>(task); });
  }
  execute(1, offset_threads, [&] { sum_lengths(task); });
  const auto warps = static_cast<unsigned>(bands.size());
  execute((warps + pack_warps - 1) / pack_warps, 32 * pack_warps, [&] { pack_bands(task); });
  CHECK(scratch.back().words[0] == 0);
  batch.output.erase(batch.output.begin(), batch.output.begin() + static_cast<std::ptrdiff_t>(shift));
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
  CHECK(batch.offsets[0] == 0);
  CHECK(batch.is_untouched(border - 8, border));
  CHECK(batch.is_untouched(border + batch.offsets.back(), border + batch.offsets.back() + border));
}

}  // namespace

TEST_CASE("the encoder's kernels make libjpeg-turbo's tiles, of all sizes of tiles and images") {
  std::mt19937 random(1);
  for (int run = 0; run < 24; ++run) {
    const PixelFormat format = run % 2 == 0 ? luminance_format : rgb_format;
    const auto side = static_cast<std::uint32_t>(16 * (1 + test::random_below(random, 8)));
    const Size size = test::random_size(random, 2 * side);
    const Content content = test::all_contents[random() % std::size(test::all_contents)];
    CAPTURE(static_cast<int>(content));
    check_image(test::image_to_encode(random, size, format, content, random() % 9), side,
                static_cast<int>(1 + test::random_below(random, 100)), random() % 16);
  }
}

TEST_CASE("the encoder's kernels put bands together that are larger than their window") {
  std::mt19937 random(2);
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    check_image(test::image_to_encode(random, {260, 256}, format, Content::noise, 0), 256, 100, 0);
    check_image(test::image_to_encode(random, {256, 16}, format, Content::extreme, 0), 256, 100, 3);
  }
}

TEST_CASE("tiles that don't fit the output are left out, and those that do are whole") {
  std::mt19937 random(3);
  const auto image = test::image_to_encode(random, {160, 96}, rgb_format, Content::noise, 0);
  const std::vector<JpegTilePosition> tiles = test::tile_grid(image.image, 32);
  const JpegEncoderLimits limits = limits_for(32, rgb_format, tiles.size());
  const Encoded whole = encode(limits, 80, image, tiles, tiles.size() * most_tile_bytes(limits));
  for (const std::size_t fitting : {std::size_t{0}, std::size_t{4}, tiles.size()}) {
    for (const std::size_t more : {0, 1}) {
      const std::size_t capacity = whole.offsets[fitting] + more;
      const Encoded part = encode(limits, 80, image, tiles, capacity);
      CHECK(part.offsets == whole.offsets);
      for (std::size_t i = 0; i < fitting; ++i) CHECK(part.tile(i) == whole.tile(i));
      CHECK(part.is_untouched(border + whole.offsets[fitting], part.output.size()));
      CHECK((part.offsets.back() <= capacity) == (fitting == tiles.size()));
    }
  }
}

TEST_CASE("scratch memory that is too small is told, and nothing is written beyond it") {
  std::mt19937 random(4);
  const auto image = test::image_to_encode(random, {160, 96}, luminance_format, Content::noise, 0);
  const std::vector<JpegTilePosition> tiles = test::tile_grid(image.image, 32);
  JpegEncoderLimits limits = limits_for(32, luminance_format, tiles.size());
  const std::size_t capacity = tiles.size() * most_tile_bytes(limits);
  const Encoded whole = encode(limits, 80, image, tiles, capacity);
  REQUIRE(whole.scratch_units > 20);
  for (const std::uint32_t units : {0U, 1U, 20U, whole.scratch_units - 1, whole.scratch_units}) {
    limits.scratch_bytes = std::uint64_t{units} * BandRecord::unit_bytes;
    const Encoded part = encode(limits, 80, image, tiles, capacity);
    CHECK(part.offsets == whole.offsets);
    CHECK(part.scratch_units == whole.scratch_units);
    if (units == whole.scratch_units) CHECK(part.output == whole.output);
  }
}
