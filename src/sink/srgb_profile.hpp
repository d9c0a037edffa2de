#pragma once

#include <cstddef>
#include <span>

namespace slidestream {

/// An ICC profile of version 4.3 for sRGB (IEC 61966-2-1): a matrix and a parametric curve, written by this program.
std::span<const std::byte> srgb_profile();

}  // namespace slidestream
