#pragma once

#include <limits>

#include "cuda/tiles/stitch.hpp"
#include "image/mirror.hpp"
#include "image/stitch_blend.hpp"

/// \file
/// The kernels of `map_tile`, `gather_tiles` and `cut_mirrored`: a thread makes a pixel. Included where kernels are
/// compiled, and by what runs them on the host.

namespace slidestream::cuda {
namespace {

constexpr unsigned stitch_threads = 256;

/// Blocks that a rectangle takes: each makes a part of one row.
constexpr std::uint32_t blocks_across(std::int64_t width) {
  return static_cast<std::uint32_t>((width + stitch_threads - 1) / stitch_threads);
}

/// \param factor  as `map_values` has it: divided once, on the host
template <class Sample>
__global__ void __launch_bounds__(stitch_threads) map_tile_values(const TileValues tile, float factor) {
  constexpr auto most = static_cast<float>(std::numeric_limits<Sample>::max());
  const std::uint32_t pixel = blockIdx.x * stitch_threads + threadIdx.x;
  if (pixel >= tile.pixels) return;
  const NetworkOutput& output = tile.output;
  auto* const to = static_cast<Sample*>(tile.to) + std::size_t{pixel} * static_cast<std::size_t>(output.channels);
  const auto given = [&](std::int32_t channel) {
    return tile.values[static_cast<std::size_t>(channel) * tile.pixels + pixel];
  };
  float largest = given(0);
  float sum = 0.0F;
  if (output.activation == NetworkActivation::softmax) {
    for (std::int32_t channel = 1; channel < output.channels; ++channel) {
      largest = given(channel) > largest ? given(channel) : largest;
    }
    for (std::int32_t channel = 0; channel < output.channels; ++channel)
      sum += exp_of_negative(given(channel) - largest);
  }
  bool wrong = false;
  for (std::int32_t channel = 0; channel < output.channels; ++channel) {
    float value = given(channel);
    wrong = wrong || value - value != 0.0F;
    if (output.activation == NetworkActivation::softmax) value = exp_of_negative(value - largest) / sum;
    if (output.activation == NetworkActivation::sigmoid) value = sigmoid_of(value);
    wrong = wrong || (tile.refuses_outside && is_outside(value, output));
    to[channel] = static_cast<Sample>(mapped_value(value, output.low, factor, most));
  }
  if (!wrong) return;
  *tile.absent = 1;
  atomicMax(tile.wrong, std::numeric_limits<std::uint32_t>::max() - tile.number);
}

/// Tile i along one axis and the one before it, at a sample.
struct AxisAt {
  std::int64_t tile;
  std::int64_t blend;  ///< -1: tile i alone counts
};
__device__ AxisAt axis_at(const StitchAxis& axis, std::int64_t at) {
  const std::int64_t tile = axis.tile_at(at);
  return {tile, axis.blend_at(at, tile)};
}

template <class Sample>
__device__ CountedTiles<Sample> tiles_at(const KeptTiles& kept, std::int64_t x, std::int64_t y) {
  const AxisAt across = axis_at(kept.x, x);
  const AxisAt down = axis_at(kept.y, y);
  const std::int64_t samples = kept.x.tile * kept.y.tile * kept.channels;
  CountedTiles<Sample> tiles;
  for (int above = 0; above < 2; ++above) {
    const std::uint32_t ramp_down = down.blend < 0 ? 256U : kept.ramp[down.blend];
    const std::uint32_t weight_down = above == 0 ? ramp_down : 256 - ramp_down;
    if (weight_down == 0) continue;
    const std::int64_t row = down.tile - above;
    for (int left = 0; left < 2; ++left) {
      const std::uint32_t ramp_across = across.blend < 0 ? 256U : kept.ramp[across.blend];
      const std::uint32_t weight = weight_down * (left == 0 ? ramp_across : 256 - ramp_across);
      if (weight == 0) continue;
      const std::int64_t column = across.tile - left;
      const std::int64_t place = row % 2 * kept.x.count + column;
      const Sample* const first = static_cast<const Sample*>(kept.tiles) + place * samples;
      const std::int64_t pixel = (y - kept.y.begin(row)) * kept.x.tile + x - kept.x.begin(column);
      tiles.add(kept.absent[place] != 0 ? nullptr : first + pixel * kept.channels, weight);
    }
  }
  return tiles;
}

/// \param rect  of which row blockIdx.x / across is made
template <class Sample>
__global__ void __launch_bounds__(stitch_threads)
    gather_pixels(const KeptTiles kept, std::byte* out, std::ptrdiff_t pitch, const Rect rect, std::uint32_t across) {
  const std::uint32_t row = blockIdx.x / across;
  const std::int64_t column = std::int64_t{blockIdx.x - row * across} * stitch_threads + threadIdx.x;
  if (column >= rect.width) return;
  const CountedTiles<Sample> tiles = tiles_at<Sample>(kept, rect.x + column, rect.y + row);
  std::byte* const to_row = out + row * pitch;
  if (kept.labels) {
    reinterpret_cast<std::uint8_t*>(to_row)[column] = label_of(tiles, kept.channels, kept.ignore);
    return;
  }
  Sample* const to = reinterpret_cast<Sample*>(to_row) + column * kept.channels;
  for (std::int32_t channel = 0; channel < kept.channels; ++channel) {
    to[channel] = static_cast<Sample>(blended(tiles, channel, kept.fill));
  }
}

__global__ void __launch_bounds__(stitch_threads)
    cut_pixels(std::uint8_t* tile, const ConstPixelView<MemorySpace::device> rows, const Rect rect,
               std::uint32_t across) {
  const std::uint32_t y = blockIdx.x / across;
  const std::int64_t x = std::int64_t{blockIdx.x - y * across} * stitch_threads + threadIdx.x;
  if (x >= rect.width) return;
  const std::int64_t from_y = mirror_symmetric(rect.y + y, rows.image.height);
  const std::int64_t from_x = mirror_symmetric(rect.x + x, rows.image.width);
  const auto* const from =
      reinterpret_cast<const std::uint8_t*>(rows.data) + (from_y - rows.rect.y) * rows.pitch + 3 * from_x;
  std::uint8_t* const to = tile + 3 * (y * rect.width + x);
  for (int channel = 0; channel < 3; ++channel) to[channel] = from[channel];
}

}  // namespace
}  // namespace slidestream::cuda
