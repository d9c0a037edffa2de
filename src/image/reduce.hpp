#pragma once

#include "image/views.hpp"

/// \file
/// Images made smaller by powers of two.

namespace slidestream {

/// ceil(width / 2^halvings) x ceil(height / 2^halvings).
constexpr Size reduced_size(const Size& size, int halvings) noexcept {
  const std::int64_t last = (std::int64_t{1} << halvings) - 1;
  return {(size.width + last) >> halvings, (size.height + last) >> halvings};
}

/// Each pixel of `out` is the mean of the n pixels of its 2^j x 2^j block that lie inside the image, rounded half up:
/// floor((2 sum + n) / (2 n)), in 64 bits. 8-bit samples, any number of channels, host memory. Reading a level in
/// strips of a multiple of 2^j rows and reducing each gives the same as reducing it whole. \param in holds the blocks
/// of `out.rect` as far as they lie inside `in.image`; `out.image` is `reduced_size` of that. \param halvings j, 0 to
/// 24 \throws std::invalid_argument when the views don't fit
void reduce_image(const HostView& out, const ConstHostView& in, int halvings);

}  // namespace slidestream
