// Whatever an encoder is told: the GPU's JPEG 2000 decoder, run on the host, gives what OpenJPEG gives or nothing.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <stdexcept>
#include <string>

#include "cuda/jpeg2000_tiles.hpp"
#include "slide/test_images.hpp"
#include "support/host_coders/jpeg2000_decoder.hpp"
#include "support/wide.hpp"

namespace slidestream::test {
namespace {

using cuda::Jpeg2000Reason;

class Settings {
 public:
  explicit Settings(unsigned seed) : random_(seed) {}

  int in(int low, int high) { return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1)); }
  bool once_in(int n) { return in(1, n) == 1; }

  NamedTile tile() {
    const int width = in(1, once_in(4) ? 400 : 120), height = in(1, once_in(4) ? 400 : 120);
    const int samples = once_in(4) ? in(1, 4) : 3;
    const Jpeg2000Options options = any_options(width, height, samples);
    Colour colour = once_in(2) ? Colour::rgb : Colour::ycbcr;
    if (samples < 3) colour = once_in(2) ? Colour::grey : Colour::grey_inverted;
    Bytes bytes = encode_jpeg2000(make_picture(width, height, samples, static_cast<unsigned>(random_())), options);
    if (!options.jp2 && once_in(4)) bytes = with_component_segments(bytes, in(0, samples - 1));
    return {"", std::move(bytes), colour, width, height};
  }

  TileDemand demand(const NamedTile& tile) {
    return whole_tile(tile.colour, tile.width, tile.height, once_in(2) ? rgb_format : luminance_format);
  }

 private:
  Jpeg2000Options any_options(int width, int height, int samples) {
    Jpeg2000Options options;
    options.irreversible = once_in(2);
    options.colour_transform = samples >= 3 && once_in(2);
    options.jp2 = once_in(5);
    if (once_in(12)) options.tile_size = in(16, 200);
    if (!options.colour_transform && once_in(3)) {
      options.chroma_dx = in(1, 3);
      options.chroma_dy = in(1, 2);
    }
    const int least = std::min(width / options.chroma_dx, height / options.chroma_dy);
    options.levels = in(0, 6);
    while (options.levels > 0 && least < 1 << options.levels) --options.levels;
    if (options.tile_size > 0) options.levels = 0;  // the encoder doesn't go on below one sample, as at an edge
    const int width_log = in(2, 6);
    options.block_width = 1 << width_log;
    options.block_height = 1 << in(2, std::min(10, 12 - width_log));
    if (options.block_height > 64 && !once_in(4)) options.block_height = 64;
    options.progression = in(0, 4);
    options.layers = once_in(2) ? 1 : in(2, 6);
    options.rate = static_cast<float>(in(1, 40));
    options.sop_markers = once_in(4);
    options.eph_markers = once_in(4);
    for (int i = once_in(3) ? in(1, 3) : 0; i > 0; --i) options.precincts.push_back(1 << in(6, 8));
    if (once_in(3)) options.tile_parts = "RLC"[in(0, 2)];
    if (once_in(6)) options.block_style = once_in(3) ? in(1, 63) : in(1, 63) & 42;
    options.packet_lengths = once_in(4);
    return options;
  }

  /// COC and QCC for a component that say what COD and QCD say, behind these.
  static Bytes with_component_segments(const Bytes& bytes, int component) {
    const auto u8 = [&bytes](std::size_t at) { return std::to_integer<std::size_t>(bytes[at]); };
    Bytes changed = bytes;
    const auto insert = [&](std::size_t behind, int marker, std::size_t from, std::size_t end, int style) {
      Bytes segment = {std::byte{0xFF}, static_cast<std::byte>(marker), std::byte{0}, std::byte{0},
                       static_cast<std::byte>(component)};
      if (style >= 0) segment.push_back(static_cast<std::byte>(style));
      segment.insert(segment.end(), bytes.begin() + static_cast<std::ptrdiff_t>(from),
                     bytes.begin() + static_cast<std::ptrdiff_t>(end));
      segment[3] = static_cast<std::byte>(segment.size() - 2);
      changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(behind), segment.begin(), segment.end());
    };
    std::size_t coding = 0;
    std::size_t steps = 0;
    for (std::size_t at = 2; u8(at + 1) != 0x90; at += 2 + (u8(at + 2) << 8 | u8(at + 3))) {
      if (u8(at + 1) == 0x52) coding = at;
      if (u8(at + 1) == 0x5C) steps = at;
    }
    const auto end = [&](std::size_t at) { return at + 2 + (u8(at + 2) << 8 | u8(at + 3)); };
    // The later one first, so that the other's place stays.
    insert(end(steps), 0x5D, steps + 4, end(steps), -1);
    if (coding > steps) throw std::runtime_error("COD is expected before QCD");
    insert(end(coding), 0x53, coding + 9, end(coding), static_cast<int>(u8(coding + 4) & 1U));
    return changed;
  }

  std::mt19937 random_;
};

/// Whether the frame's pixels are `expected`'s, which are the tile's.
bool equal(const cuda::HostJpeg2000Decoder& decoder, const std::vector<std::uint8_t>& expected) {
  return std::equal(decoder.pixels().begin(), decoder.pixels().end(), expected.begin(), expected.end());
}

TEST_CASE(
    "whatever an encoder is told, JPEG 2000 tiles are as OpenJPEG has them, or left to the CPU for a reason (long)") {
  const char* wanted = std::getenv("SLIDESTREAM_SETTINGS");
  const unsigned total = wanted != nullptr ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10))
                         : is_wide()       ? 250U
                                           : 60U;
  cuda::HostJpeg2000Decoder decoder;
  std::map<std::string, int> reasons;
  for (unsigned seed = total; seed < 2 * total; ++seed) {
    CAPTURE(seed);
    Settings settings(seed);
    NamedTile tile;
    try {
      tile = settings.tile();
    } catch (const std::runtime_error&) {
      ++reasons["not encoded"];
      continue;
    }
    const TileDemand demand = settings.demand(tile);
    const Jpeg2000Reason reason = decoder.decode(tile.bytes, demand);
    ++reasons[cuda::describe(reason)];
    if (reason != Jpeg2000Reason::none) continue;
    const auto expected = decode_with_openjpeg(tile.bytes, demand);
    REQUIRE(expected.has_value());
    CHECK(equal(decoder, *expected));
  }
  std::string text;
  for (const auto& [reason, count] : reasons) text += "; " + reason + ": " + std::to_string(count);
  MESSAGE(text.substr(2));
  CHECK(reasons["not encoded"] < static_cast<int>(total / 10));
  // What isn't taken is said in the documentation; damage none of these have.
  for (const auto& entry : reasons) {
    const std::string& reason = entry.first;
    const bool known = reason == "none" || reason == "not encoded" || reason == "an unusual style of code-blocks" ||
                       reason == "code-blocks of an unusual size" || reason.starts_with("several tiles") ||
                       reason.starts_with("no wavelet transform") || reason.starts_with("too many") ||
                       reason.starts_with("tile-parts");
    CHECK_MESSAGE(known, reason);
  }
  CHECK(reasons[cuda::describe(Jpeg2000Reason::none)] > static_cast<int>(total / 2));
}

}  // namespace
}  // namespace slidestream::test
