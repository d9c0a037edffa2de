// The kernels that put windows together and gather what tiles begin with, thread by thread on the host: for machines
// without a GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/tiles/fronts.cuh"
#include "cuda/tiles/windows.cuh"
#pragma GCC diagnostic pop

using namespace slidestream;
using namespace slidestream::cuda;

TEST_CASE("rectangles of tiles come to their places in windows, at every alignment") {
  std::mt19937 random(3);
  const auto in = [&](int low, int high) {
    return static_cast<std::uint32_t>(std::uniform_int_distribution<int>(low, high)(random));
  };
  for (int round = 0; round < 40; ++round) {
    const bool aligned = round % 2 == 0;
    const WindowShape shape = {aligned ? 16 * in(1, 6) : in(1, 70), in(1, 40), round % 4 >= 2};
    const std::size_t window_bytes = std::size_t{3} * shape.width * shape.height;
    std::vector<std::uint8_t> decoded(40000);
    for (std::uint8_t& sample : decoded) sample = static_cast<std::uint8_t>(random() >> 24);
    // Vectors' memory begins at multiples of 16.
    std::vector<std::uint8_t> found(3 * window_bytes, 7);
    std::vector<std::uint8_t> expected = found;
    std::vector<WindowPiece> pieces;
    for (std::uint32_t window = 0; window < 3; ++window) {
      WindowPiece piece;
      piece.window = reinterpret_cast<std::uintptr_t>(found.data() + window * window_bytes);
      piece.x = aligned ? in(0, static_cast<int>(shape.width) / 16 - 1) * 16 : in(0, static_cast<int>(shape.width) - 1);
      piece.y = in(0, static_cast<int>(shape.height) - 1);
      piece.width = in(1, static_cast<int>(shape.width - piece.x));
      piece.height = in(1, static_cast<int>(shape.height - piece.y));
      piece.pitch = aligned ? 304 : in(300, 320);
      piece.source = aligned ? 16 * in(0, 50) : in(0, 800);
      piece.fill = in(0, 255);
      if (in(0, 3) == 0) piece.source = WindowPiece::value;
      pieces.push_back(piece);
      const std::size_t plane = std::size_t{shape.width} * shape.height;
      for (std::uint32_t y = 0; y < piece.height; ++y) {
        for (std::uint32_t x = 0; x < piece.width; ++x) {
          for (std::size_t channel = 0; channel < 3; ++channel) {
            const std::size_t pixel = std::size_t{piece.y + y} * shape.width + piece.x + x;
            const std::size_t at = shape.planar ? channel * plane + pixel : 3 * pixel + channel;
            expected[window * window_bytes + at] =
                piece.source == WindowPiece::value
                    ? static_cast<std::uint8_t>(piece.fill)
                    : decoded[piece.source + std::size_t{y} * piece.pitch + 3 * x + channel];
          }
        }
      }
    }
    const auto blocks = static_cast<unsigned>(pieces.size() * kBlocksPerPiece);
    for (unsigned block = 0; block < blocks; ++block) {
      test::emulator::run_block(block, blocks, kThreads, [&] { place_pieces(decoded.data(), pieces.data(), shape); });
    }
    CAPTURE(round);
    CHECK(found == expected);
  }
}

TEST_CASE("what tiles begin with is gathered side by side, of any length, from any place") {
  std::mt19937 random(4);
  std::vector<std::byte> compressed(5000);
  for (std::byte& byte : compressed) byte = static_cast<std::byte>(random());
  for (const std::size_t count : {std::size_t{1}, std::size_t{4}, std::size_t{5}, std::size_t{130}}) {
    constexpr std::size_t room = 100;
    std::vector<std::byte> found(count * room + 1, std::byte{7});
    std::vector<std::byte> expected = found;
    std::vector<TileFront> fronts;
    for (std::size_t i = 0; i < count; ++i) {
      fronts.push_back({random() % (compressed.size() - room), static_cast<std::uint32_t>(random() % (room + 1)), 0});
      std::copy_n(compressed.data() + fronts[i].offset, fronts[i].bytes, expected.data() + i * room);
    }
    const auto blocks = static_cast<unsigned>((count + FrontShape::tiles - 1) / FrontShape::tiles);
    for (unsigned block = 0; block < blocks; ++block) {
      test::emulator::run_block(block, blocks, FrontShape::threads,
                                [&] { copy_fronts(found.data(), room, compressed.data(), fronts.data(), count); });
    }
    CHECK(found == expected);
  }
}
