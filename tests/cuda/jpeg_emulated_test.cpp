// The kernels that make RGB and luminance of decoded components, thread by thread on the host: for machines without a
// GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "colour/made_profiles.hpp"
#include "cuda/colour_cases.hpp"
#include "cuda/jpeg_tiles.hpp"
#include "support/host_coders/jpeg_decoder.hpp"

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/jpeg/convert.cuh"
#pragma GCC diagnostic pop

namespace slidestream::test {
namespace {

using namespace slidestream::cuda;

constexpr std::uint8_t untouched = 0xA5;

template <OctetKind kind, bool with_luminance, ColoursBy by>
void emulate(const JpegDeviceBatch& device) {
  using Shape = ConvertShape<kind, by>;
  // Teams that take several tiles, and one that may have none.
  const unsigned blocks = by == ColoursBy::matrix ? (device.tile_count + 2) / (2 * Shape::teams) : device.tile_count;
  for (unsigned block = 0; block < blocks; ++block) {
    emulator::run_block(block, blocks, 32 * Shape::warps, [&] { convert<kind, with_luminance, by>(device); });
  }
}

template <bool with_luminance, ColoursBy by>
void emulate_all(const JpegDeviceBatch& device, std::uint32_t kinds) {
  const auto has = [kinds](OctetKind kind) { return (kinds >> static_cast<unsigned>(kind) & 1U) != 0; };
  if (has(OctetKind::none)) emulate<OctetKind::none, with_luminance, by>(device);
  if (has(OctetKind::h2v2)) emulate<OctetKind::h2v2, with_luminance, by>(device);
  if (has(OctetKind::h2v1)) emulate<OctetKind::h2v1, with_luminance, by>(device);
  if (has(OctetKind::full)) emulate<OctetKind::full, with_luminance, by>(device);
  if (has(OctetKind::full_rgb)) emulate<OctetKind::full_rgb, with_luminance, by>(device);
  if (has(OctetKind::grey)) emulate<OctetKind::grey, with_luminance, by>(device);
}

/// Parts of tiles, each with a place of its own in one plane: RGB, then its luminance.
class Scene {
 public:
  /// \param rgb_wanted  else luminance alone is, of both
  explicit Scene(bool with_luminance, bool rgb_wanted = true)
      : rgb_wanted_(rgb_wanted),
        limits_{.tiles = 500, .compressed_bytes = 64U << 20, .format = rgb_format, .component_bytes = 64U << 20},
        upload_((JpegBatch::upload_bytes(with(limits_, with_luminance)) + 63) / 64),
        batch_(with(limits_, with_luminance), std::as_writable_bytes(std::span(upload_))) {}

  /// \param aligned  as whole rows of a slide lie: else at any address, from any column on
  void add(const NamedTile& tile, bool aligned, std::mt19937& random) {
    const auto below = [&random](int n) { return static_cast<std::uint32_t>(random() % static_cast<unsigned>(n)); };
    JpegPlacement placement;
    placement.from_x = aligned ? 0 : below(tile.width);
    placement.from_y = below(tile.height);
    placement.width = static_cast<std::uint32_t>(tile.width) - placement.from_x;
    placement.width -= below(static_cast<int>(placement.width));
    placement.height = static_cast<std::uint32_t>(tile.height) - placement.from_y;
    placement.height -= below(static_cast<int>(placement.height));
    placement.pitch = (3 * placement.width + 40) / 16 * 16 + (aligned ? 0 : 1 + below(40));
    placement.offset = plane_bytes_ + (aligned ? 0 : 1 + below(15));
    // Luminance may lie anywhere, too.
    placement.luminance_pitch = (placement.width + 15) / 8 * 8 + (random() % 3 == 0 ? below(8) : 0);
    placement.luminance_offset =
        placement.offset + std::size_t{placement.pitch} * placement.height + (random() % 3 == 0 ? below(8) : 0);
    const std::size_t end = placement.luminance_offset + std::size_t{placement.luminance_pitch} * placement.height;
    plane_bytes_ = (end + 64) / 16 * 16;
    if (!rgb_wanted_) placement.offset = placement.pitch = 0;
    // Every other grey tile is of a slide whose grey is inverted.
    const bool inverted = tile.name.starts_with("grey") && batch_.tiles() % 2 == 0;
    REQUIRE(batch_.add(tile.bytes, compressed_.size(), {},
                       whole_tile(inverted ? Colour::grey_inverted : tile.colour, tile.width, tile.height, rgb_format),
                       placement) == JpegReason::none);
    compressed_.insert(compressed_.end(), tile.bytes.begin(), tile.bytes.end());
  }

  std::uint32_t kinds() const { return batch_.octet_kinds(); }

  /// The plane as the host's decoder fills it, and as the kernels do, of the same components.
  template <ColoursBy by>
  std::pair<std::vector<std::uint8_t>, std::vector<std::uint8_t>> run(bool with_luminance,
                                                                      const DeviceColours& colours) {
    batch_.finish(1000);
    const auto* tiles = reinterpret_cast<const JpegDeviceTile*>(batch_.upload().data() + batch_.layout().tiles);
    std::vector<std::uint8_t> expected(plane_bytes_ + 64, untouched);
    std::vector<std::uint8_t> found = expected;
    std::vector<uint4> components(limits_.component_bytes / sizeof(uint4));
    auto* const samples = reinterpret_cast<std::uint8_t*>(components.data());
    HostJpegDecoder decoder;
    for (std::uint32_t i = 0; i < batch_.tiles(); ++i) {
      REQUIRE(decoder.decode(expected.data(), batch_, i, compressed_, colours.program) == JpegReason::none);
      std::ranges::copy(decoder.components(), samples + std::size_t{64} * tiles[i].first_block);
    }
    // A tile that was given back is left alone.
    std::vector<std::uint32_t> verdicts(batch_.tiles(), 0);
    JpegDeviceBatch device{};
    device.codings = reinterpret_cast<const JpegCoding*>(batch_.upload().data() + batch_.layout().codings);
    device.tiles = tiles;
    device.components = samples;
    device.plane = found.data();
    device.verdicts = verdicts.data();
    device.tile_count = batch_.tiles();
    device.colours = colours;
    CHECK(colours_by(colours) == by);
    if (with_luminance) {
      device.luminance =
          reinterpret_cast<const JpegDeviceLuminance*>(batch_.upload().data() + batch_.layout().luminance);
      emulate_all<true, by>(device, kinds());
    } else {
      emulate_all<false, by>(device, kinds());
    }
    return {std::move(expected), std::move(found)};
  }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  static JpegBatchLimits with(JpegBatchLimits limits, bool luminance) {
    limits.with_luminance = luminance;
    return limits;
  }

  bool rgb_wanted_;
  JpegBatchLimits limits_;
  std::vector<Line> upload_;
  JpegBatch batch_;
  std::vector<std::byte> compressed_;
  std::size_t plane_bytes_ = 0;
};

template <ColoursBy by = ColoursBy::file>
void check(bool with_luminance, bool rgb_wanted = true, const DeviceColours& colours = {}) {
  std::vector<NamedTile> tiles = tiles_of_every_kind();
  for (NamedTile& tile : tiles_for_rgb()) tiles.push_back(std::move(tile));
  std::mt19937 random(7);
  Scene scene(with_luminance, rgb_wanted);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    scene.add(tiles[i], true, random);
    if (i % 4 == 0) scene.add(tiles[i], false, random);
  }
  REQUIRE(scene.kinds() == 0x3F);  // every kind is there
  const auto planes = scene.run<by>(with_luminance, colours);
  const auto& expected = planes.first;
  const auto& found = planes.second;
  const auto differs = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end()).first;
  CHECK_MESSAGE(differs == expected.end(), "byte ", differs - expected.begin());
}

}  // namespace

TEST_CASE("RGB of components, emulated, is the host's, and nothing else is written") { check(false); }

TEST_CASE("luminance beside RGB, emulated, is the host's, and nothing else is written") { check(true); }

TEST_CASE("luminance alone of both, emulated, is the host's, and nothing else is written") { check(true, false); }

TEST_CASE("converted RGB and its luminance, emulated, are the host's, and nothing else is written") {
  const std::vector<MadeProfile> profiles = made_profiles();
  const ColourConversion matrix(std::ranges::find(profiles, "sRGB's curve", &MadeProfile::name)->bytes);
  const HostColours by_matrix(matrix);
  const ColourConversion table(std::ranges::find(profiles, "mft2 to Lab", &MadeProfile::name)->bytes);
  HostColours by_table(table);
  const std::vector<std::uint32_t> every = every_colour(table);
  by_table.use_every(every);
  for (const auto& [with_luminance, rgb_wanted] : {std::pair(true, true), {true, false}, {false, true}}) {
    check<ColoursBy::matrix>(with_luminance, rgb_wanted, by_matrix.colours());
    check<ColoursBy::every>(with_luminance, rgb_wanted, by_table.colours());
  }
}

TEST_CASE("luminance of four pixels at a time is the formula's, for every sample") {
  std::mt19937 random(3);
  for (std::uint32_t first = 0; first < 256; ++first) {
    std::uint32_t words[3] = {first | (255 - first) << 8 | 0xFF0000U, static_cast<std::uint32_t>(random()),
                              static_cast<std::uint32_t>(random())};
    std::rotate(std::begin(words), std::begin(words) + first % 3, std::end(words));
    std::uint32_t pixels[3];
    interleave(words[0], words[1], words[2], pixels);
    const std::uint32_t four = luminance_of_four(words[0], words[1], words[2]);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(pixels);
    for (unsigned i = 0; i < 4; ++i) {
      const auto sample = [&](std::size_t c) { return words[c] >> 8 * i & 255U; };
      CHECK((four >> 8 * i & 255U) == luminance(sample(0), sample(1), sample(2)));
      for (std::size_t c = 0; c < 3; ++c) CHECK(bytes[3 * i + c] == sample(c));
    }
  }
}

}  // namespace slidestream::test
