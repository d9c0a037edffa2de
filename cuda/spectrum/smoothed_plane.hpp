#pragma once

#include <cstddef>
#include <cstdint>

#include "spectrum/engine.hpp"

namespace slidestream::cuda {

/// Smoothed luminance less `luminance_offset`, in device memory: columns [x0, x0 + width) and rows [y0, y0 + height) of
/// the image.
struct SmoothedPlane {
  float* data = nullptr;     ///< aligned to 16 bytes; pixel (x0, y0)
  std::ptrdiff_t pitch = 0;  ///< floats from a row to the next, a multiple of 4; what lies beyond `width` is undefined
  std::int64_t x0 = 0;
  std::int64_t y0 = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;

  std::size_t floats() const noexcept { return static_cast<std::size_t>(height * pitch); }
};

/// The part of the image that a block of windows covers; `data` is null.
inline SmoothedPlane smoothed_plane_of(const WindowBlock& block, int window, int stride) {
  SmoothedPlane plane;
  plane.x0 = block.first_column * stride;
  plane.y0 = block.first_row * stride;
  if (block.columns <= 0 || block.rows <= 0) return plane;
  plane.width = (block.columns - 1) * stride + window;
  plane.height = (block.rows - 1) * stride + window;
  plane.pitch = (plane.width + 63) / 64 * 64;
  return plane;
}

}  // namespace slidestream::cuda
