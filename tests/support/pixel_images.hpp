#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "image/views.hpp"

/// \file
/// Images of random pixels, and rectangles of them in memory of their own, with nothing readable around.

namespace slidestream::test {

/// A rectangle of an image, and the memory that it lies in.
struct PixelImage {
  PixelImage(const Rect& held, Size size, PixelFormat of, std::size_t padding = 0)
      : rect(held),
        image(size),
        format(of),
        pitch(static_cast<std::size_t>(held.width) * of.pixel_bytes() + padding * bytes_of(of.sample)),
        bytes(pitch * static_cast<std::size_t>(held.height) - padding * bytes_of(of.sample)) {}
  PixelImage(Size size, PixelFormat of) : PixelImage({0, 0, size.width, size.height}, size, of) {}

  HostView view() { return {bytes.data(), static_cast<std::ptrdiff_t>(pitch), rect, image, format}; }
  ConstHostView view() const { return {bytes.data(), static_cast<std::ptrdiff_t>(pitch), rect, image, format}; }

  /// A sample by its place in the image.
  template <class T = std::uint8_t>
  T at(std::int64_t x, std::int64_t y, int channel = 0) const {
    T value;
    std::memcpy(&value, sample<T>(x, y, channel), sizeof(T));
    return value;
  }
  template <class T = std::uint8_t>
  void set(std::int64_t x, std::int64_t y, int channel, T value) {
    std::memcpy(const_cast<std::byte*>(sample<T>(x, y, channel)), &value, sizeof(T));
  }

  /// A copy of a rectangle inside this one.
  PixelImage cut(const Rect& part, std::size_t padding = 0) const {
    PixelImage copy(part, image, format, padding);
    for (std::int64_t y = part.y; y < part.bottom(); ++y) {
      std::memcpy(copy.bytes.data() + static_cast<std::size_t>(y - part.y) * copy.pitch,
                  bytes.data() + static_cast<std::size_t>(y - rect.y) * pitch +
                      static_cast<std::size_t>(part.x - rect.x) * format.pixel_bytes(),
                  static_cast<std::size_t>(part.width) * format.pixel_bytes());
    }
    return copy;
  }

  bool same_pixels(const PixelImage& other, const Rect& part) const {
    for (std::int64_t y = part.y; y < part.bottom(); ++y) {
      if (std::memcmp(sample<std::byte>(part.x, y, 0), other.sample<std::byte>(part.x, y, 0),
                      static_cast<std::size_t>(part.width) * format.pixel_bytes()) != 0) {
        return false;
      }
    }
    return true;
  }

  Rect rect;
  Size image;
  PixelFormat format;
  std::size_t pitch;
  std::vector<std::byte> bytes;

 private:
  template <class T>
  const std::byte* sample(std::int64_t x, std::int64_t y, int channel) const {
    return bytes.data() + static_cast<std::size_t>(y - rect.y) * pitch +
           static_cast<std::size_t>(x - rect.x) * format.pixel_bytes() + static_cast<std::size_t>(channel) * sizeof(T);
  }
};

/// Below `bound`.
template <class Random>
std::int64_t random_below(Random& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
}

template <class Random>
Size random_size(Random& random, std::int64_t most) {
  return {1 + random_below(random, most), 1 + random_below(random, most)};
}

template <class Random>
Rect random_rect(Random& random, Size size) {
  const std::int64_t x = random_below(random, size.width);
  const std::int64_t y = random_below(random, size.height);
  return {x, y, 1 + random_below(random, size.width - x), 1 + random_below(random, size.height - y)};
}

/// Noise; every fourth image has no values but 0 and 255.
template <class Random>
PixelImage random_image(Random& random, Size size, PixelFormat format) {
  PixelImage image(size, format);
  const bool extreme = random() % 4 == 0;
  for (std::byte& value : image.bytes) {
    const auto noise = static_cast<std::uint8_t>(random() >> 11);
    value = static_cast<std::byte>(extreme ? (noise & 1U) * 255U : noise);
  }
  return image;
}

}  // namespace slidestream::test
