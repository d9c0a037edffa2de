#pragma once

#include <cstddef>
#include <cstdint>
#include <slidestream/image.hpp>

/// \file
/// What the kernels of image operators are told of an image's part.

namespace slidestream::cuda {

/// Sides are below 2^31.
struct ImageTask {
  std::uint8_t* out;       ///< pixel (x, y)
  std::int64_t out_pitch;  ///< bytes from a row to the next
  const std::uint8_t* in;  ///< the first pixel that is held: (in_x, in_y)
  std::int64_t in_pitch;
  std::int32_t x;  ///< of the image: the rectangle to make
  std::int32_t y;
  std::int32_t width;
  std::int32_t height;
  std::int32_t in_x;  ///< the pixels that are held: columns [in_x, in_right), rows [in_y, in_bottom)
  std::int32_t in_y;
  std::int32_t in_right;
  std::int32_t in_bottom;
  std::int32_t image_width;
  std::int32_t image_height;
  /// Rows of `out` begin at multiples of 16 bytes, and what they are made from as well.
  bool aligned;
};

inline ImageTask make_image_task(const PixelView<MemorySpace::device>& out,
                                 const ConstPixelView<MemorySpace::device>& in) {
  const auto side = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const auto* const source = in.data + (out.rect.x - in.rect.x) * static_cast<std::ptrdiff_t>(in.format.pixel_bytes());
  const auto address = reinterpret_cast<std::uintptr_t>(out.data) | reinterpret_cast<std::uintptr_t>(source) |
                       static_cast<std::uintptr_t>(out.pitch) | static_cast<std::uintptr_t>(in.pitch);
  return {reinterpret_cast<std::uint8_t*>(out.data),
          out.pitch,
          reinterpret_cast<const std::uint8_t*>(in.data),
          in.pitch,
          side(out.rect.x),
          side(out.rect.y),
          side(out.rect.width),
          side(out.rect.height),
          side(in.rect.x),
          side(in.rect.y),
          side(in.rect.right()),
          side(in.rect.bottom()),
          side(in.image.width),
          side(in.image.height),
          address % 16 == 0};
}

/// Thread blocks that make `items` when each makes so many.
constexpr std::int64_t blocks_for(std::int64_t items, std::int64_t each) noexcept { return (items + each - 1) / each; }

}  // namespace slidestream::cuda
