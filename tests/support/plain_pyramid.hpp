#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <slidestream/image.hpp>
#include <vector>

/// \file
/// Whole images in memory, and their smaller levels straight from the definition.

namespace slidestream::test {

struct WholeImage {
  Size size;
  PixelFormat format;
  std::vector<std::byte> bytes;  ///< row by row, without gaps

  WholeImage(Size pixels, PixelFormat of)
      : size(pixels), format(of), bytes(static_cast<std::size_t>(pixels.width * pixels.height) * of.pixel_bytes()) {}

  template <class T>
  T* at(std::int64_t x, std::int64_t y) {
    return reinterpret_cast<T*>(bytes.data()) + (y * size.width + x) * format.channels;
  }
  template <class T>
  const T* at(std::int64_t x, std::int64_t y) const {
    return const_cast<WholeImage*>(this)->at<T>(x, y);
  }
  ConstPixelView<MemorySpace::host> rows(std::int64_t y, std::int64_t count) const {
    const auto pitch = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(size.width) * format.pixel_bytes());
    return {bytes.data() + y * pitch, pitch, {0, y, size.width, count}, size, format};
  }
  friend bool operator==(const WholeImage&, const WholeImage&) = default;
};

/// Noise, with the largest sample everywhere in some places.
inline WholeImage noise_image(Size size, PixelFormat format, std::mt19937& random) {
  WholeImage image(size, format);
  const std::int64_t samples = size.width * size.height * format.channels;
  const bool bright = random() % 4 == 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    const unsigned any = bright ? ~0U : static_cast<unsigned>(random());
    if (format.sample == SampleType::uint8) reinterpret_cast<std::uint8_t*>(image.bytes.data())[i] = any & 0xFF;
    if (format.sample == SampleType::uint16) reinterpret_cast<std::uint16_t*>(image.bytes.data())[i] = any & 0xFFFF;
    if (format.sample == SampleType::float32) {
      reinterpret_cast<float*>(image.bytes.data())[i] = static_cast<float>(any) * 1e-7F - 100.0F;
    }
  }
  return image;
}

/// The sum of what is inside of block (x, y) of 2^level x 2^level samples: of its quarters, pairs of a row first.
inline double plain_sum(const WholeImage& image, std::int64_t x, std::int64_t y, int c, int level) {
  if (level == 0) return image.at<float>(x, y)[c];
  const std::int64_t half = std::int64_t{1} << (level - 1);
  const auto row_sum = [&](std::int64_t v) {
    const double left = plain_sum(image, 2 * x, v, c, level - 1);
    return (2 * x + 1) * half < image.size.width ? left + plain_sum(image, 2 * x + 1, v, c, level - 1) : left;
  };
  const double upper = row_sum(2 * y);
  return (2 * y + 1) * half < image.size.height ? upper + row_sum(2 * y + 1) : upper;
}

/// A level from the image itself.
inline WholeImage plain_level(const WholeImage& image, int level, bool labels) {
  const std::int64_t block = std::int64_t{1} << level;
  WholeImage made({(image.size.width + block - 1) / block, (image.size.height + block - 1) / block}, image.format);
  const auto sum_of = [&](std::int64_t x, std::int64_t y, int c, auto sample) {
    using T = decltype(sample);
    std::uint64_t sum = 0;
    std::uint64_t n = 0;
    for (std::int64_t v = y * block; v < std::min((y + 1) * block, image.size.height); ++v) {
      for (std::int64_t u = x * block; u < std::min((x + 1) * block, image.size.width); ++u, ++n) {
        sum += image.at<T>(u, v)[c];
      }
    }
    return static_cast<T>((2 * sum + n) / (2 * n));
  };
  const auto mean_of = [&](std::int64_t x, std::int64_t y, int c) {
    const std::int64_t columns = std::min(block, image.size.width - x * block);
    const std::int64_t rows = std::min(block, image.size.height - y * block);
    return static_cast<float>(plain_sum(image, x, y, c, level) / static_cast<double>(columns * rows));
  };
  for (std::int64_t y = 0; y < made.size.height; ++y) {
    for (std::int64_t x = 0; x < made.size.width; ++x) {
      if (labels) {
        std::memcpy(made.bytes.data() + (y * made.size.width + x) * made.format.pixel_bytes(),
                    image.bytes.data() + (y * block * image.size.width + x * block) * image.format.pixel_bytes(),
                    made.format.pixel_bytes());
        continue;
      }
      for (int c = 0; c < image.format.channels; ++c) {
        if (image.format.sample == SampleType::uint8) made.at<std::uint8_t>(x, y)[c] = sum_of(x, y, c, std::uint8_t{});
        if (image.format.sample == SampleType::uint16) {
          made.at<std::uint16_t>(x, y)[c] = sum_of(x, y, c, std::uint16_t{});
        }
        if (image.format.sample == SampleType::float32) made.at<float>(x, y)[c] = mean_of(x, y, c);
      }
    }
  }
  return made;
}

/// All levels, the image first.
inline std::vector<WholeImage> plain_pyramid(const WholeImage& image, int levels, bool labels) {
  std::vector<WholeImage> made{image};
  for (int level = 1; level < levels; ++level) made.push_back(plain_level(image, level, labels));
  return made;
}

}  // namespace slidestream::test
