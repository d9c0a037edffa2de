#pragma once

#include <cstddef>
#include <cstdint>

/// @file
/// Images and rectangles of images, in host or device memory. Coordinates are pixels of one level of a slide.

namespace slidestream {

/// Where pixels are stored. Pinned memory is host memory.
enum class MemorySpace { host, device };

/// Type of one sample of a pixel.
enum class SampleType : std::uint8_t { uint8, uint16, float32 };

/// Size of a sample. Thread-safe.
/// @param type  Type of the sample.
/// @return 1, 2 or 4 bytes.
constexpr std::size_t bytes_of(SampleType type) noexcept {
  return type == SampleType::uint8 ? 1 : type == SampleType::uint16 ? 2 : 4;
}

/// The samples of a pixel. They are stored side by side.
struct PixelFormat {
  SampleType sample = SampleType::uint8;
  int channels = 1;

  /// Size of a pixel.
  /// @return Bytes of a sample times `channels`.
  constexpr std::size_t pixel_bytes() const noexcept { return bytes_of(sample) * static_cast<std::size_t>(channels); }
  friend constexpr bool operator==(const PixelFormat&, const PixelFormat&) = default;
};

/// 8-bit luminance.
inline constexpr PixelFormat luminance_format = {SampleType::uint8, 1};
/// 8-bit red, green and blue, interleaved.
inline constexpr PixelFormat rgb_format = {SampleType::uint8, 3};

/// Width and height, in pixels unless the user of the type says otherwise.
struct Size {
  std::int64_t width = 0;
  std::int64_t height = 0;

  friend constexpr bool operator==(const Size&, const Size&) = default;
};

/// The rectangle of columns [x, x + width) and rows [y, y + height), in pixels.
struct Rect {
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;

  /// First column behind the rectangle.
  /// @return x + width.
  constexpr std::int64_t right() const noexcept { return x + width; }
  /// First row below the rectangle.
  /// @return y + height.
  constexpr std::int64_t bottom() const noexcept { return y + height; }
  /// Tells whether another rectangle is inside this one.
  /// @param other  A rectangle of the same image.
  /// @return True if none of its sides is outside this rectangle.
  constexpr bool contains(const Rect& other) const noexcept {
    return other.x >= x && other.y >= y && other.right() <= right() && other.bottom() <= bottom();
  }
  friend constexpr bool operator==(const Rect&, const Rect&) = default;
};

/// Numbers of pixels on the four sides of a rectangle, such as the halo of an operator's windows.
struct Border {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;

  friend constexpr bool operator==(const Border&, const Border&) = default;
};

/// A rectangle of an image in memory that another object owns. `Byte` is `std::byte`, or `const std::byte` for a
/// read-only view.
template <MemorySpace space, class Byte>
struct BasicPixelView {
  Byte* data = nullptr;      ///< first sample of pixel (rect.x, rect.y)
  std::ptrdiff_t pitch = 0;  ///< bytes from one row to the next
  Rect rect;                 ///< the pixels of the image that the view holds
  Size image;                ///< size of the whole image, in pixels
  PixelFormat format;

  /// First sample of a row, at `rect.x`. `T` is the sample type of `format`, const for a read-only view.
  /// @param y  Row of the image, from `rect.y` to `rect.bottom()` - 1. It isn't checked.
  /// @return Address of the sample, in the view's memory space.
  template <class T>
  T* row(std::int64_t y) const noexcept {
    return reinterpret_cast<T*>(data + (y - rect.y) * pitch);
  }

  /// A read-only view of the same pixels.
  // NOLINTNEXTLINE(google-explicit-constructor): what may be written may be read
  operator BasicPixelView<space, const std::byte>() const noexcept { return {data, pitch, rect, image, format}; }
};

/// A writable view.
template <MemorySpace space>
using PixelView = BasicPixelView<space, std::byte>;
/// A read-only view.
template <MemorySpace space>
using ConstPixelView = BasicPixelView<space, const std::byte>;

}  // namespace slidestream
