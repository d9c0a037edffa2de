#pragma once

#include <cstdint>

#include "codec/luminance.hpp"
#include "codec/ycbcr.hpp"
#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg/component_layout.hpp"

/// \file
/// From decoded components to RGB as libjpeg-turbo has it with its defaults, one pixel at a time: the plain way, for
/// any sampling and size. libjpeg's "fancy" upsampling (jdsample.c) is a triangle filter that weighs the nearer sample
/// three times; it stops at the tile's edges, where the last sample stands for the missing one.

namespace slidestream::cuda {

/// Component `c` at pixel (x, y) of a tile whose blocks begin at `samples`.
SLIDESTREAM_HOST_DEVICE std::uint32_t upsampled(const ComponentLayout& layout, const std::uint8_t* samples,
                                                std::uint32_t c, std::uint32_t x, std::uint32_t y) {
  const std::uint32_t h = layout.columns_a_sample(c);
  const std::uint32_t v = layout.rows_a_sample(c);
  const std::uint32_t column = x / h;
  const std::uint32_t row = y / v;
  const auto sample = [&](std::uint32_t at_x, std::uint32_t at_y) -> std::uint32_t {
    return samples[layout.offset(c, at_x, at_y)];
  };
  // libjpeg repeats where there are too few columns for its filter, and at other factors than two.
  const bool along_x = h == 2 && v <= 2 && layout.width(c) > 2;
  const bool along_y = v == 2 && (h == 1 || along_x);
  if (!along_x && !along_y) return sample(column, row);
  const auto neighbour = [](std::uint32_t at, bool after, std::uint32_t size) {
    return after ? (at + 1 < size ? at + 1 : at) : (at > 0 ? at - 1 : at);
  };
  const std::uint32_t beside = neighbour(column, x % 2 != 0, layout.width(c));
  const std::uint32_t beyond = neighbour(row, y % 2 != 0, layout.height(c));
  if (!along_y) return (3 * sample(column, row) + sample(beside, row) + (x % 2 != 0 ? 2 : 1)) >> 2;
  const std::uint32_t near = 3 * sample(column, row) + sample(column, beyond);
  if (!along_x) return (near + (y % 2 != 0 ? 2 : 1)) >> 2;
  const std::uint32_t far = 3 * sample(beside, row) + sample(beside, beyond);
  return (3 * near + far + (x % 2 != 0 ? 7 : 8)) >> 4;
}

/// A pixel of a tile.
SLIDESTREAM_HOST_DEVICE Rgb rgb_at(const ComponentLayout& layout, const std::uint8_t* samples, bool inverted,
                                   std::uint32_t x, std::uint32_t y) {
  std::uint32_t values[3];
  for (std::uint32_t c = 0; c < layout.coding().component_count; ++c) values[c] = upsampled(layout, samples, c, x, y);
  if (layout.coding().component_count == 1) {
    const auto value = static_cast<std::uint8_t>(inverted ? 255 - values[0] : values[0]);
    return {value, value, value};
  }
  if (layout.coding().ycbcr != 0) {
    return ycbcr_to_rgb(static_cast<int>(values[0]), static_cast<int>(values[1]), static_cast<int>(values[2]));
  }
  return {static_cast<std::uint8_t>(values[0]), static_cast<std::uint8_t>(values[1]),
          static_cast<std::uint8_t>(values[2])};
}

/// The luminance of a pixel whose RGB is `rgb`: what the CPU's decoder gives for both.
SLIDESTREAM_HOST_DEVICE std::uint8_t luminance_at(const ComponentLayout& layout, const std::uint8_t* samples,
                                                  const Rgb& rgb, std::uint32_t x, std::uint32_t y) {
  if (layout.coding().component_count == 1) return rgb.red;
  return layout.coding().ycbcr != 0 ? samples[layout.offset(0, x, y)] : luminance(rgb.red, rgb.green, rgb.blue);
}

}  // namespace slidestream::cuda
