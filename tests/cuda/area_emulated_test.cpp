// The kernels that make pixels of areas, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <random>
#include <slidestream/stitch.hpp>
#include <vector>

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/tiles/area.cuh"
#pragma GCC diagnostic pop

using namespace slidestream;
using namespace slidestream::cuda;

namespace {

struct Image {
  Size size;
  std::vector<std::uint8_t> pixels;
};

/// Noise, or flat, or black and white alone, where sums are largest.
Image make_image(const Size& size, int kind, std::mt19937& random) {
  Image image{size, std::vector<std::uint8_t>(static_cast<std::size_t>(size.width * size.height * 3))};
  for (std::uint8_t& sample : image.pixels) {
    const auto noise = static_cast<std::uint8_t>(random() >> 24);
    sample = kind == 0 ? noise : kind == 1 ? 255 : noise < 128 ? 0 : 255;
  }
  return image;
}

/// What the host makes of all of it.
Image resampled(const Image& image, std::int64_t factor) {
  AreaResampler resampler(image.size, factor);
  Image out{resampler.size(), {}};
  out.pixels.resize(static_cast<std::size_t>(out.size.width * out.size.height * 3));
  std::uint8_t* to = out.pixels.data();
  for (std::int64_t y = 0; y < image.size.height; ++y) {
    if (resampler.add(to, image.pixels.data() + y * image.size.width * 3)) to += out.size.width * 3;
  }
  return out;
}

constexpr std::int64_t factors[] = {65537, 66848, 100000, 131072, 131073, 163840, 200001, 262144, 999999, 256 * 65536};

}  // namespace

TEST_CASE("areas of rows are the host's, whatever the rectangle that is held") {
  std::mt19937 random(5);
  const auto in = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  int kind = 0;
  for (const std::int64_t factor : factors) {
    const std::int64_t side = factor / 65536 + 1;
    const Image image = make_image({side + in(0, 40), side + in(0, 40)}, kind++ % 3, random);
    const Image expected = resampled(image, factor);
    const Rect rect = {in(0, expected.size.width - 1), in(0, expected.size.height - 1), 0, 0};
    const Rect out = {rect.x, rect.y, in(1, expected.size.width - rect.x), in(1, expected.size.height - rect.y)};
    Rect held = AreaResampler::source_of(out, factor);
    const std::int64_t more_left = in(0, held.x);
    const std::int64_t more_above = in(0, held.y);
    held = {held.x - more_left, held.y - more_above, held.width + more_left, held.height + more_above};
    const std::int64_t pitch = image.size.width * 3;
    std::vector<std::uint8_t> made(static_cast<std::size_t>(out.height * (out.width * 3 + 5)), 9);
    const PixelView<MemorySpace::device> to = {reinterpret_cast<std::byte*>(made.data()), out.width * 3 + 5, out,
                                               expected.size, rgb_format};
    const ConstPixelView<MemorySpace::device> from = {
        reinterpret_cast<const std::byte*>(image.pixels.data() + held.y * pitch + held.x * 3), pitch, held, image.size,
        rgb_format};
    const AreaPiece piece = area_piece(to, from, factor);
    const std::uint32_t across = (piece.width + AreaShape::threads - 1) / AreaShape::threads;
    const std::uint32_t blocks = across * piece.height;
    for (unsigned block = 0; block < blocks; ++block) {
      test::emulator::run_block(block, blocks, AreaShape::threads,
                                [&] { make_area_rows(piece, across, factor, AreaMean::of(factor)); });
    }
    CAPTURE(factor);
    bool same = true;
    for (std::int64_t y = 0; y < out.height; ++y) {
      const std::uint8_t* const row = made.data() + y * to.pitch;
      for (std::int64_t i = 0; i < out.width * 3; ++i) {
        same = same &&
               row[i] == expected.pixels[static_cast<std::size_t>(((out.y + y) * expected.size.width + out.x) * 3 + i)];
      }
      for (std::int64_t i = out.width * 3; i < to.pitch; ++i) same = same && row[i] == 9;
    }
    CHECK(same);

    ConstPixelView<MemorySpace::device> less = from;
    --less.rect.height;
    CHECK_THROWS_AS(area_piece(to, less, factor), std::invalid_argument);
    CHECK_THROWS_AS(area_piece(to, from, 65536), std::invalid_argument);
  }
}

TEST_CASE("areas of windows lie side by side or in planes, and what has no source is filled") {
  std::mt19937 random(6);
  for (const bool planar : {false, true}) {
    for (const std::int64_t factor : {std::int64_t{131072}, std::int64_t{150001}}) {
      const Image image = make_image({61, 47}, 0, random);
      const Image expected = resampled(image, factor);
      // Windows of 16 x 12 at (4, 5) and (10, 3): the second in two pieces, one of them without a source.
      constexpr std::uint32_t width = 16;
      constexpr std::uint32_t height = 12;
      std::vector<std::uint8_t> found(2 * 3 * width * height, 1);
      const auto piece_at = [&](std::size_t window, std::uint32_t row) {
        AreaPiece piece;
        const std::size_t first = (window * 3 * height * width) + row * width * (planar ? 1 : 3);
        piece.out = reinterpret_cast<std::uintptr_t>(found.data() + first);
        piece.out_pitch = planar ? width : 3 * width;
        piece.plane = planar ? std::int64_t{width} * height : 0;
        piece.width = width;
        return piece;
      };
      AreaPiece first = piece_at(0, 0);
      first.height = height;
      first.source = reinterpret_cast<std::uintptr_t>(image.pixels.data());
      first.pitch = 61 * 3;
      first.x = 4;
      first.y = 5;
      AreaPiece second = first;
      second.out = piece_at(1, 0).out;
      second.x = 10;
      second.y = 3;
      second.height = 7;
      AreaPiece third = piece_at(1, 7);
      third.height = 5;
      third.fill = 77;
      const std::vector<AreaPiece> pieces = {first, second, third};
      const auto blocks = static_cast<unsigned>(pieces.size() * AreaShape::blocks_per_piece);
      for (unsigned block = 0; block < blocks; ++block) {
        test::emulator::run_block(block, blocks, AreaShape::threads,
                                  [&] { make_area_pieces(pieces.data(), factor, AreaMean::of(factor)); });
      }
      bool same = true;
      for (std::size_t window = 0; window < 2; ++window) {
        for (std::uint32_t y = 0; y < height; ++y) {
          for (std::uint32_t x = 0; x < width; ++x) {
            for (std::size_t channel = 0; channel < 3; ++channel) {
              const std::size_t at = planar ? (channel * height + y) * width + x : (y * width + x) * 3 + channel;
              const auto column = x + (window == 0 ? 4 : 10);
              const auto row = y + (window == 0 ? 5 : 3);
              const int wanted =
                  window == 1 && y >= 7
                      ? 77
                      : expected.pixels[(row * static_cast<std::size_t>(expected.size.width) + column) * 3 + channel];
              same = same && found[window * 3 * width * height + at] == wanted;
            }
          }
        }
      }
      CAPTURE(planar);
      CAPTURE(factor);
      CHECK(same);
    }
  }
}
