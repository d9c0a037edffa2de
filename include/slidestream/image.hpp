#pragma once

#include <cstddef>
#include <cstdint>

/// \file
/// Images and rectangles of them, in host or device memory. Coordinates are pixels of one level of a slide.

namespace slidestream {

/// Where pixels lie. Pinned memory is host memory.
enum class MemorySpace { host, device };

enum class SampleType : std::uint8_t { uint8, uint16, float32 };

constexpr std::size_t bytes_of(SampleType type) noexcept {
  return type == SampleType::uint8 ? 1 : type == SampleType::uint16 ? 2 : 4;
}

/// What a pixel is made of. Its samples lie side by side.
struct PixelFormat {
  SampleType sample = SampleType::uint8;
  int channels = 1;

  constexpr std::size_t pixel_bytes() const noexcept { return bytes_of(sample) * static_cast<std::size_t>(channels); }
  friend constexpr bool operator==(const PixelFormat&, const PixelFormat&) = default;
};

/// 8-bit luminance, and interleaved 8-bit red, green, blue.
inline constexpr PixelFormat luminance_format = {SampleType::uint8, 1};
inline constexpr PixelFormat rgb_format = {SampleType::uint8, 3};

struct Size {
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend constexpr bool operator==(const Size&, const Size&) = default;
};

/// Columns [x, x + width) and rows [y, y + height).
struct Rect {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;

  constexpr std::int64_t right() const noexcept { return x + width; }
  constexpr std::int64_t bottom() const noexcept { return y + height; }
  constexpr bool contains(const Rect& other) const noexcept {
    return other.x >= x && other.y >= y && other.right() <= right() && other.bottom() <= bottom();
  }
  friend constexpr bool operator==(const Rect&, const Rect&) = default;
};

/// Pixels that are wanted around others: of an operator's footprint, around the pixels that it makes.
struct Border {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;

  friend constexpr bool operator==(const Border&, const Border&) = default;
};

/// A rectangle of an image, in memory that somebody else owns. `Byte` is `std::byte`, const where it is only read.
template <MemorySpace space, class Byte>
struct BasicPixelView {
  Byte* data = nullptr;      ///< first sample of pixel (rect.x, rect.y)
  std::ptrdiff_t pitch = 0;  ///< bytes from a row to the next
  Rect rect;                 ///< that the view holds, in pixels of the image
  Size image;                ///< the whole image: beyond it there are no pixels
  PixelFormat format;

  /// First sample of a row, at `rect.x`. `T` is the format's sample type, const where it is only read.
  template <class T>
  T* row(std::int64_t y) const noexcept {
    return reinterpret_cast<T*>(data + (y - rect.y) * pitch);
  }

  // NOLINTNEXTLINE(google-explicit-constructor): what may be written may be read
  operator BasicPixelView<space, const std::byte>() const noexcept { return {data, pitch, rect, image, format}; }
};

template <MemorySpace space>
using PixelView = BasicPixelView<space, std::byte>;
template <MemorySpace space>
using ConstPixelView = BasicPixelView<space, const std::byte>;

}  // namespace slidestream
