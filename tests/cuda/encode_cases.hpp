#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "codec/tile_encoder.hpp"
#include "cuda/encode/encode_batch.hpp"
#include "image/views.hpp"
#include "support/pixel_images.hpp"

/// \file
/// Images to encode on a GPU, and their tiles as the host's encoder has them.

namespace slidestream::test {

enum class Content { noise, extreme, flat, gradient, stripes, few };
inline constexpr Content all_contents[] = {Content::noise,    Content::extreme, Content::flat,
                                           Content::gradient, Content::stripes, Content::few};

/// An image whose view holds all of it, with rows that begin at any address.
template <class Random>
PixelImage image_to_encode(Random& random, Size size, const PixelFormat& format, Content content, std::size_t padding) {
  PixelImage image({0, 0, size.width, size.height}, size, format, padding);
  const auto noise = [&] { return static_cast<std::uint8_t>(random() >> 11); };
  const std::uint8_t first = noise();
  const std::uint8_t second = noise();
  for (std::int64_t y = 0; y < size.height; ++y) {
    for (std::int64_t x = 0; x < size.width; ++x) {
      for (int c = 0; c < format.channels; ++c) {
        std::uint8_t value = first;
        if (content == Content::noise) value = noise();
        if (content == Content::extreme) value = (noise() & 1U) != 0 ? 255 : 0;
        if (content == Content::gradient) value = static_cast<std::uint8_t>(x * (c + 1) + y * 2 + first);
        if (content == Content::stripes) value = (x / 8 + y / (c + 1)) % 2 == 0 ? first : second;
        if (content == Content::few && random() % 97 == 0) value = noise();
        image.set(x, y, c, value);
      }
    }
  }
  return image;
}

/// The tiles of a grid over an image.
inline std::vector<cuda::JpegTilePosition> tile_grid(Size image, std::uint32_t side) {
  std::vector<cuda::JpegTilePosition> tiles;
  for (std::int64_t y = 0; y < image.height; y += side) {
    for (std::int64_t x = 0; x < image.width; x += side) {
      tiles.push_back({static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y)});
    }
  }
  return tiles;
}

/// A tile as the host's encoder has it.
inline std::vector<std::byte> expected_tile(TileEncoder& encoder, const ConstHostView& plane, std::uint32_t side,
                                            cuda::JpegTilePosition at) {
  return encoder.encode(part_of(plane, {at.x, at.y, std::min<std::int64_t>(side, plane.image.width - at.x),
                                        std::min<std::int64_t>(side, plane.image.height - at.y)}));
}

}  // namespace slidestream::test
