// The JPEG 2000 kernels' logic, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "cuda/jpeg2000/decoder_memory.hpp"
#include "cuda/jpeg2000_tiles.hpp"
#include "support/wide.hpp"

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/jpeg2000/blocks.cuh"
#include "cuda/jpeg2000/large.cuh"
#include "cuda/jpeg2000/packets.cuh"
#include "cuda/jpeg2000/transform.cuh"
#pragma GCC diagnostic pop

namespace slidestream::test {
namespace {

using namespace slidestream::cuda;

constexpr std::uint8_t untouched = 0xA5;

/// A tile in the plane, and which part of it is wanted.
struct Wanted {
  const NamedTile* tile;
  JpegPlacement placement;
};

/// The device's memory for one batch, and its kernels, in the order of `Jpeg2000BatchDecoder::enqueue`.
class EmulatedDecoder {
 public:
  explicit EmulatedDecoder(const Jpeg2000BatchLimits& limits)
      : layout_(limits), upload_(layout_.size + 64), batch_(limits, aligned_upload()), tables_(make_mq_tables()) {}

  Jpeg2000Batch& batch() { return batch_; }

  std::vector<std::uint32_t> run(std::uint8_t* plane, const std::vector<std::byte>& compressed) {
    const Jpeg2000BatchLimits& limits = layout_.limits;
    const Jpeg2000DecoderMemory parts(layout_);
    const std::byte* upload = batch_.upload().data();
    std::vector<std::uint32_t> verdicts(batch_.tiles(), 0xFFFFFFFFU);
    // Memory holds anything before.
    const auto filled = [](std::size_t words) { return std::vector<std::uint32_t>(words, 0xDEADBEEFU); };
    auto state = filled(limits.state_words);
    auto stream = filled(parts.stream_words_limit);
    auto planes = filled(limits.plane_words + 2 * std::size_t{plane_margin});
    std::vector<Jpeg2000Block> blocks(limits.blocks);
    std::vector<BlockPiece> pieces(limits.pieces);
    std::vector<BlockJob> jobs(limits.blocks);
    auto job_blocks = filled(limits.blocks);
    Jpeg2000Counters counters{};
    Jpeg2000DeviceBatch device{};
    device.compressed = reinterpret_cast<const std::uint8_t*>(compressed.data());
    device.codings = reinterpret_cast<const Jpeg2000Coding*>(upload + layout_.codings);
    device.tiles = reinterpret_cast<const Jpeg2000DeviceTile*>(upload + layout_.tiles);
    device.parts = reinterpret_cast<const Jpeg2000TilePart*>(upload + layout_.parts);
    device.tables = tables_.data();
    device.state = state.data();
    device.blocks = blocks.data();
    device.pieces = pieces.data();
    device.jobs = jobs.data();
    device.job_blocks = job_blocks.data();
    device.stream = stream.data();
    device.planes = planes.data() + plane_margin;
    std::vector<float> colour(colour_floats * limits.colour_tiles, 12345.0F);
    device.colour = colour.data();
    device.colour_capacity = colour.size();
    device.counters = &counters;
    device.plane = plane;
    device.verdicts = verdicts.data();
    device.plane_capacity = limits.plane_words;
    device.stream_capacity = static_cast<std::uint32_t>(parts.stream_words_limit);
    device.piece_capacity = limits.pieces;
    for (const Jpeg2000Wave& wave : batch_.waves()) run_wave(of_wave(device, wave));
    return verdicts;
  }

 private:
  void run_wave(const Jpeg2000DeviceBatch& device) const {
    *device.counters = {};
    const auto execute = [](unsigned count, unsigned threads, const auto& kernel) {
      for (unsigned block = 0; block < count; ++block) emulator::run_block(block, count, threads, kernel);
    };
    execute((device.tile_count + PacketShape::parse_threads - 1) / PacketShape::parse_threads,
            PacketShape::parse_threads, [&] { parse_packets(device); });
    execute(1, length_bins, [&] { scan_bins(device); });
    execute((device.tile_count + 7) / 8, PacketShape::sort_threads, [&] { sort_blocks(device); });
    execute(2, PacketShape::join_threads, [&] { join_blocks(device); });
    execute(2, BlockShape::threads, [&] {
      if (batch_.has_styles()) {
        decode_blocks<true>(device, 32);
      } else {
        decode_blocks<false>(device, 32);
      }
    });
    execute(device.tile_count, TransformShape::threads, [&] { transform_tiles<Wavelet97>(device); });
    execute(device.tile_count, TransformShape::threads, [&] { transform_tiles<Wavelet53>(device); });
    const auto at_a_time = [&device](std::size_t floats) {
      return static_cast<unsigned>(std::min<std::uint64_t>(device.colour_capacity / floats, device.tile_count));
    };
    const unsigned colour = at_a_time(colour_floats);
    execute(colour, TransformShape::threads, [&] { transform_colour<Wavelet97>(device); });
    execute(colour, TransformShape::threads, [&] { transform_colour<Wavelet53>(device); });
    if (device.large_side == 0) return;
    const unsigned large = at_a_time(large_floats(device.large_side));
    execute(large, LargeShape::threads, [&] { transform_large<Wavelet97>(device); });
    execute(large, LargeShape::threads, [&] { transform_large<Wavelet53>(device); });
  }

  std::span<std::byte> aligned_upload() {
    const std::size_t shift = -reinterpret_cast<std::uintptr_t>(upload_.data()) % 64;
    return std::span(upload_).subspan(shift, upload_.size() - 64);
  }

  Jpeg2000UploadLayout layout_;
  std::vector<std::byte> upload_;
  Jpeg2000Batch batch_;
  alignas(16) std::array<std::uint8_t, MqTables::bytes> tables_;
};

/// Memory for pixels of tiles, in which each has as much for itself as it needs: RGB, then luminance.
class Pixels {
 public:
  explicit Pixels(const std::vector<NamedTile>& tiles) {
    std::size_t end = 0;
    for (const NamedTile& tile : tiles) {
      end = (end + 3) / 4 * 4;
      begins_.push_back(end);
      end += rgb_bytes(tile) + luminance_pitch(tile) * static_cast<std::size_t>(tile.height) + 256;
    }
    begins_.push_back(end);
    bytes_.assign(end, untouched);
  }

  /// Whether its rows lie at multiples of four bytes.
  static bool is_aligned(const NamedTile& tile) { return tile.bytes.size() % 2 == 0; }
  static std::uint32_t luminance_pitch(const NamedTile& tile) {
    const auto pitch = static_cast<std::uint32_t>(tile.width) + 77;
    return is_aligned(tile) ? (pitch + 3) / 4 * 4 : pitch;
  }
  static std::uint32_t rgb_pitch(const NamedTile& tile) {
    return 3 * luminance_pitch(tile) + (is_aligned(tile) ? 0 : 1);
  }
  static std::size_t rgb_bytes(const NamedTile& tile) {
    return (rgb_pitch(tile) * static_cast<std::size_t>(tile.height) + 256 + 3) / 4 * 4;
  }

  std::uint8_t* data() { return bytes_.data(); }
  std::size_t begin(std::size_t i) const { return begins_[i]; }
  std::span<const std::uint8_t> of_tile(std::size_t i) const {
    return std::span(bytes_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }
  /// A part of what OpenJPEG makes of a tile.
  void draw(const NamedTile& tile, const PixelFormat& format, const JpegPlacement& part, std::uint64_t offset,
            std::uint32_t pitch) {
    const TileDemand demand = whole_tile(tile.colour, tile.width, tile.height, format);
    const auto whole = decode_with_openjpeg(tile.bytes, demand);
    REQUIRE(whole.has_value());
    const std::size_t pixel = format.pixel_bytes();
    for (std::size_t y = 0; y < part.height; ++y) {
      const auto* from =
          whole->data() + pixel * ((part.from_y + y) * static_cast<std::size_t>(tile.width) + part.from_x);
      std::copy_n(from, pixel * part.width, bytes_.data() + offset + y * pitch);
    }
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<std::uint8_t> bytes_;
};

/// Decodes tiles in one batch, some only in part, and compares all of the memory but for tiles that found too little
/// of it. The limits may be those of more tiles. \returns their number.
std::size_t check(const std::vector<NamedTile>& tiles, Jpeg2000BatchLimits limits, std::mt19937& random) {
  limits.tiles = std::max(limits.tiles, static_cast<std::uint32_t>(tiles.size()));
  limits.codings = limits.tiles;
  for (const NamedTile& tile : tiles) limits.compressed_bytes += tile.bytes.size();
  EmulatedDecoder decoder(limits);
  const bool is_rgb = limits.format == rgb_format;
  Pixels pixels(tiles);
  Pixels expected = pixels;
  std::vector<std::byte> compressed;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const NamedTile& tile = tiles[i];
    const TileDemand demand = whole_tile(tile.colour, tile.width, tile.height, luminance_format);
    const auto width = static_cast<std::uint32_t>(tile.width), height = static_cast<std::uint32_t>(tile.height);
    JpegPlacement placement{0, 0, 0, 0, width, height};
    const unsigned step = Pixels::is_aligned(tile) ? 4 : 1;
    placement.luminance_offset = pixels.begin(i) + Pixels::rgb_bytes(tile) + random() % 60 / step * step;
    placement.luminance_pitch = Pixels::luminance_pitch(tile);
    placement.offset = is_rgb ? pixels.begin(i) + random() % 60 / step * step : placement.luminance_offset;
    placement.pitch = is_rgb ? Pixels::rgb_pitch(tile) : placement.luminance_pitch;
    if (i % 3 == 1) {
      placement.from_x = static_cast<std::uint32_t>(random() % width);
      placement.from_y = static_cast<std::uint32_t>(random() % height);
      placement.width = 1 + static_cast<std::uint32_t>(random() % (width - placement.from_x));
      placement.height = 1 + static_cast<std::uint32_t>(random() % (height - placement.from_y));
    }
    REQUIRE(decoder.batch().add(tile.bytes, compressed.size(), demand, placement) == Jpeg2000Reason::none);
    compressed.insert(compressed.end(), tile.bytes.begin(), tile.bytes.end());
    expected.draw(tile, limits.format, placement, placement.offset, placement.pitch);
    if (limits.with_luminance) {
      expected.draw(tile, luminance_format, placement, placement.luminance_offset, placement.luminance_pitch);
    }
  }
  compressed.resize((compressed.size() + 15) / 16 * 16);
  const std::vector<std::uint32_t> verdicts = decoder.run(pixels.data(), compressed);
  std::size_t without_memory = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    CAPTURE(tiles[i].name);
    if (verdicts[i] == static_cast<std::uint32_t>(Jpeg2000Reason::out_of_memory)) {
      ++without_memory;
      continue;
    }
    CHECK(verdicts[i] == 0);
    CHECK(std::ranges::equal(pixels.of_tile(i), expected.of_tile(i)));
  }
  return without_memory;
}

/// Large ones take the emulator long: of those one in `every`.
std::vector<NamedTile> some_tiles(int every, std::vector<NamedTile> all = jpeg2000_tiles_of_every_kind()) {
  std::vector<NamedTile> tiles;
  int large = 0;
  for (NamedTile& tile : all) {
    if (tile.bytes.size() < 6000 || ++large % every == 0) tiles.push_back(std::move(tile));
  }
  return tiles;
}

/// One half of them or the other, or all of them where there is time. The emulator takes long.
std::vector<NamedTile> half_of(const std::vector<NamedTile>& tiles, bool first) {
  if (is_wide()) return tiles;
  const auto middle = tiles.begin() + static_cast<std::ptrdiff_t>((tiles.size() + 1) / 2);
  return first ? std::vector<NamedTile>(tiles.begin(), middle) : std::vector<NamedTile>(middle, tiles.end());
}

TEST_CASE("JPEG 2000 kernels, emulated, give what OpenJPEG gives") {
  std::vector<NamedTile> tiles = some_tiles(8);
  const auto all = static_cast<std::uint32_t>(tiles.size());
  std::mt19937 random(2);
  CHECK(check(half_of(tiles, false), {.tiles = all, .plane_words = 2U << 20}, random) == 0);
  // In waves of a few tiles, which follow each other in the same memory; each has room for its own alone.
  CHECK(check(half_of(tiles, true), {.wave_tiles = 3, .plane_words = 400000}, random) == 0);
  // With too little memory of either kind for all of them.
  std::erase_if(tiles, [](const NamedTile& tile) { return !tile.name.starts_with("blocks of"); });
  std::size_t without = check(tiles, {.plane_words = 1500}, random);
  CHECK(without > 0);
  CHECK(without < tiles.size());
  without = check(tiles, {.pieces = 140, .plane_words = 2U << 20}, random);
  CHECK(without > 0);
  CHECK(without < tiles.size());
}

TEST_CASE("JPEG 2000 kernels, emulated, give RGB as OpenJPEG does, and luminance beside it") {
  const std::vector<NamedTile> tiles = some_tiles(16);
  const auto all = static_cast<std::uint32_t>(tiles.size());
  std::mt19937 random(3);
  // Blocks take several tiles each.
  const Jpeg2000BatchLimits both{.tiles = all, .format = rgb_format, .with_luminance = true, .colour_tiles = 7};
  CHECK(check(half_of(tiles, false), both, random) == 0);
  CHECK(check(half_of(tiles, true), {.format = rgb_format, .wave_tiles = 5}, random) == 0);
}

TEST_CASE("JPEG 2000 kernels, emulated, take large tiles") {
  std::vector<NamedTile> tiles = jpeg2000_large_tiles({.most_pixels = 130000});
  // Small ones beside them.
  const std::vector<NamedTile> small = some_tiles(100, jpeg2000_tiles_of_every_kind({.most = 40}));
  tiles.insert(tiles.end(), small.begin(), small.begin() + 5);
  std::mt19937 random(4);
  Jpeg2000BatchLimits limits{.state_words = 1U << 20, .colour_tiles = 19};
  limits.tiles = static_cast<std::uint32_t>(tiles.size());
  CHECK(check(half_of(tiles, true), limits, random) == 0);
  limits.format = rgb_format;
  limits.with_luminance = true;
  limits.colour_tiles = 40;
  CHECK(check(half_of(tiles, false), limits, random) == 0);
}

}  // namespace
}  // namespace slidestream::test
