#pragma once

#include <slidestream/image.hpp>

#include <algorithm>
#include <stdexcept>

/// \file
/// What functions over views of host memory share: the rectangle that an operator needs, and the check that it is
/// there.

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
inline void require_input(const HostView& out, const ConstHostView& in, const Border& border,
                          const PixelFormat& format) {
  if (out.rect.width < 1 || out.rect.height < 1 || !Rect{0, 0, out.image.width, out.image.height}.contains(out.rect)) {
    throw std::invalid_argument("the rectangle to make is empty or reaches beyond its image");
  }
  if (in.format != format) throw std::invalid_argument("the operator's input has another pixel format");
  if (in.image != out.image || !in.rect.contains(with_border(out.rect, border, out.image))) {
    throw std::invalid_argument("the operator's input doesn't hold the pixels around its output");
  }
}

}  // namespace slidestream
