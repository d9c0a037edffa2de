#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "cuda/encode/encode_batch.hpp"
#include "cuda/encode_cases.hpp"

/// \file
/// What batches of tiles are tried with, for those who encode them on a GPU and for its kernels on the host.

namespace slidestream::test {

constexpr std::byte untouched{0xA5};
/// Bytes before a batch's output and behind it that nobody may write.
constexpr std::size_t encoded_border = 64;

/// What a batch comes to.
struct EncodedBatch {
  std::vector<std::uint64_t> offsets;
  std::uint32_t scratch_units = 0;
  std::vector<std::byte> output;  ///< with a border on both sides

  std::vector<std::byte> tile(std::size_t i) const {
    const auto begin = output.begin() + encoded_border;
    return {begin + static_cast<std::ptrdiff_t>(offsets[i]), begin + static_cast<std::ptrdiff_t>(offsets[i + 1])};
  }
  /// Whether nothing was written before the output, and nothing from this byte of it on.
  bool is_untouched_from(std::size_t begin) const {
    const auto all_are = [](auto first, auto last) {
      return std::all_of(first, last, [](std::byte b) { return b == untouched; });
    };
    const auto at = output.begin() + encoded_border;
    return all_are(output.begin(), at) && all_are(at + static_cast<std::ptrdiff_t>(begin), output.end());
  }
};

/// Encodes a batch of an image's tiles. The output has `capacity` bytes, and begins `shift` bytes behind a multiple of
/// 16.
using EncodeBatch = std::function<EncodedBatch(
    const cuda::JpegEncoderLimits& limits, int quality, const PixelImage& image,
    const std::vector<cuda::JpegTilePosition>& tiles, std::size_t capacity, std::size_t shift)>;

inline cuda::JpegEncoderLimits encoder_limits(std::uint32_t side, const PixelFormat& format, std::size_t tiles,
                                              ChromaSubsampling subsampling = ChromaSubsampling::s420) {
  cuda::JpegEncoderLimits limits{
      .tiles = static_cast<std::uint32_t>(tiles), .side = side, .format = format, .subsampling = subsampling};
  limits.scratch_bytes = cuda::most_scratch_bytes(limits);
  return limits;
}

/// All tiles of an image are libjpeg-turbo's, and nothing else is written.
inline void check_encoded(const EncodeBatch& encode, const PixelImage& image, std::uint32_t side, int quality,
                          std::size_t shift, ChromaSubsampling subsampling = ChromaSubsampling::s420) {
  CAPTURE(static_cast<int>(subsampling));
  CAPTURE(side);
  CAPTURE(quality);
  CAPTURE(image.image.width);
  CAPTURE(image.image.height);
  CAPTURE(image.format.channels);
  const auto encoder =
      make_tile_encoder(TileCompression::jpeg, image.format, quality, static_cast<int>(side), subsampling);
  const std::vector<cuda::JpegTilePosition> tiles = tile_grid(image.image, side);
  const cuda::JpegEncoderLimits limits = encoder_limits(side, image.format, tiles.size(), subsampling);
  const std::size_t capacity = tiles.size() * cuda::most_tile_bytes(limits);
  const EncodedBatch batch = encode(limits, quality, image, tiles, capacity, shift);
  CHECK(batch.offsets[0] == 0);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    CAPTURE(i);
    CHECK(batch.tile(i) == expected_tile(*encoder, image.view(), side, tiles[i]));
  }
  CHECK(batch.is_untouched_from(batch.offsets.back()));
}

/// Images of any sizes, contents, sides, qualities and alignments. \param blocks  the largest side, in blocks of 16.
/// \param sides  the largest image, in sides.
inline void check_any_encoded(const EncodeBatch& encode, int runs, int blocks, std::uint32_t sides) {
  std::mt19937 random(1);
  for (int run = 0; run < runs; ++run) {
    const PixelFormat format = run % 2 == 0 ? luminance_format : rgb_format;
    const auto side = static_cast<std::uint32_t>(16 * (1 + random_below(random, blocks)));
    const Size size = random_size(random, sides * side);
    const Content content = all_contents[random() % std::size(all_contents)];
    CAPTURE(static_cast<int>(content));
    constexpr ChromaSubsampling all[] = {ChromaSubsampling::s420, ChromaSubsampling::s422, ChromaSubsampling::s444};
    check_encoded(encode, image_to_encode(random, size, format, content, random() % 9), side,
                  static_cast<int>(1 + random_below(random, 100)), random() % 16, all[run / 2 % 3]);
  }
}

/// Tiles that don't fit the output are left out, and those that do are whole.
inline void check_short_output(const EncodeBatch& encode, const PixelFormat& format) {
  std::mt19937 random(3);
  const auto image = image_to_encode(random, {160, 96}, format, Content::noise, 0);
  const std::vector<cuda::JpegTilePosition> tiles = tile_grid(image.image, 32);
  const cuda::JpegEncoderLimits limits = encoder_limits(32, format, tiles.size());
  const EncodedBatch whole = encode(limits, 80, image, tiles, tiles.size() * cuda::most_tile_bytes(limits), 0);
  CHECK(cuda::fits(limits, whole.offsets.back(), whole.offsets.back(), whole.scratch_units));
  for (const std::size_t fitting : {std::size_t{0}, std::size_t{4}, tiles.size()}) {
    for (const std::size_t more : {0, 1}) {
      const std::size_t capacity = whole.offsets[fitting] + more;
      const EncodedBatch part = encode(limits, 80, image, tiles, capacity, 0);
      CHECK(part.offsets == whole.offsets);
      for (std::size_t i = 0; i < fitting; ++i) CHECK(part.tile(i) == whole.tile(i));
      CHECK(part.is_untouched_from(whole.offsets[fitting]));
      CHECK(cuda::fits(limits, part.offsets.back(), capacity, part.scratch_units) == (fitting == tiles.size()));
    }
  }
}

/// Scratch memory that is too small is told, and nothing is written beyond it.
inline void check_short_scratch(const EncodeBatch& encode, const PixelFormat& format) {
  std::mt19937 random(4);
  const auto image = image_to_encode(random, {160, 96}, format, Content::noise, 0);
  const std::vector<cuda::JpegTilePosition> tiles = tile_grid(image.image, 32);
  cuda::JpegEncoderLimits limits = encoder_limits(32, format, tiles.size());
  const std::size_t capacity = tiles.size() * cuda::most_tile_bytes(limits);
  const EncodedBatch whole = encode(limits, 80, image, tiles, capacity, 0);
  REQUIRE(whole.scratch_units > 20);
  for (const std::uint32_t units : {0U, 1U, 20U, whole.scratch_units - 1, whole.scratch_units}) {
    limits.scratch_bytes = std::uint64_t{units} * cuda::BandRecord::unit_bytes;
    const EncodedBatch part = encode(limits, 80, image, tiles, capacity, 0);
    CHECK(part.offsets == whole.offsets);
    CHECK(part.scratch_units == whole.scratch_units);
    CHECK(cuda::fits(limits, part.offsets.back(), capacity, part.scratch_units) == (units == whole.scratch_units));
    if (units == whole.scratch_units) CHECK(part.output == whole.output);
  }
}

}  // namespace slidestream::test
