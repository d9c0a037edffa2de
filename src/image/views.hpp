#pragma once

#include <slidestream/image.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>

/// \file
/// What functions over views share: the rectangle that an operator needs and the check that it is there; for views of
/// host memory, their parts.

namespace slidestream {

using HostView = PixelView<MemorySpace::host>;
using ConstHostView = ConstPixelView<MemorySpace::host>;

/// `rect` with `border` around it, as far as that lies inside an image of this size.
constexpr Rect with_border(const Rect& rect, const Border& border, const Size& image) noexcept {
  const std::int64_t left = std::max<std::int64_t>(rect.x - border.left, 0);
  const std::int64_t top = std::max<std::int64_t>(rect.y - border.top, 0);
  return {left, top, std::min(rect.right() + border.right, image.width) - left,
          std::min(rect.bottom() + border.bottom, image.height) - top};
}

/// The same border on all four sides.
constexpr Border border_of(std::int64_t radius) noexcept { return {radius, radius, radius, radius}; }

/// \throws std::invalid_argument unless `out` lies inside its image, is not empty, and `in` is of the same image, has
/// `format` and holds what `out` needs with `border` around it.
template <MemorySpace space, class Byte>
void require_input(const PixelView<space>& out, const BasicPixelView<space, Byte>& in, const Border& border,
                   const PixelFormat& format) {
  if (out.rect.width < 1 || out.rect.height < 1 || !Rect{0, 0, out.image.width, out.image.height}.contains(out.rect)) {
    throw std::invalid_argument("the rectangle to make is empty or reaches beyond its image");
  }
  if (in.format != format) throw std::invalid_argument("the operator's input has another pixel format");
  if (in.image != out.image || !in.rect.contains(with_border(out.rect, border, out.image))) {
    throw std::invalid_argument("the operator's input doesn't hold the pixels around its output");
  }
}

/// The part of a view that is `rect`, which lies inside the view.
template <class Byte>
BasicPixelView<MemorySpace::host, Byte> part_of(const BasicPixelView<MemorySpace::host, Byte>& view, const Rect& rect) {
  const std::ptrdiff_t across = (rect.x - view.rect.x) * static_cast<std::ptrdiff_t>(view.format.pixel_bytes());
  return {view.data + (rect.y - view.rect.y) * view.pitch + across, view.pitch, rect, view.image, view.format};
}

/// Copies `out.rect`, which `in` holds in the same format.
inline void copy_pixels(const HostView& out, const ConstHostView& in) {
  const ConstHostView from = part_of(in, out.rect);
  const std::size_t bytes = static_cast<std::size_t>(out.rect.width) * out.format.pixel_bytes();
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    std::memcpy(out.row<std::byte>(y), from.row<const std::byte>(y), bytes);
  }
}

}  // namespace slidestream
