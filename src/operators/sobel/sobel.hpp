#pragma once

#include "image/views.hpp"

/// \file
/// The Sobel operator: how steep the luminance is.

namespace slidestream::operators {

/// Pixels that are needed around those that are made.
inline constexpr Border sobel_border = border_of(1);

/// The steepness of `in`'s luminance, as scikit-image's `filters.sobel` scales it: sqrt(s / 32), 0 to 255, where
/// s = Gx^2 + Gy^2 of the integer kernels ([1 2 1]^T [-1 0 1] and its transpose; Sobel and Feldman, 1968).
/// uint8 output: rounded half up, that is the number of k >= 1 with 8 (2k - 1)^2 <= s. float32 output: correctly
/// rounded. Beyond the image's edges: mirrored with the edge sample repeated (numpy `symmetric`). Any rectangle of an
/// image gives the pixels that the whole gives, to the bit. Host memory; thread-safe. \param out one channel of uint8
/// or float32 \param in luminance; holds `out.rect` with `sobel_border` around it, as far as that lies inside the image
/// \throws std::invalid_argument when the views don't fit
void sobel(const HostView& out, const ConstHostView& in);

}  // namespace slidestream::operators
