#pragma once

#include <slidestream/stitch.hpp>
#include <stdexcept>

#include "cuda/tiles/area.hpp"
#include "image/area_mean.hpp"

/// \file
/// The kernels of `make_areas`. Included where kernels are compiled, and by what runs them on the host.

namespace slidestream::cuda {
namespace {

struct AreaShape {
  static constexpr unsigned threads = 256;
  static constexpr unsigned blocks_per_piece = 8;
  static constexpr std::int64_t one = 65536;
};

/// An area's part along one axis: pixels [first, last], of which the ends count in part.
struct AreaSpan {
  std::int32_t first;
  std::int32_t last;
  std::uint32_t first_weight;
  std::uint32_t last_weight;  ///< not 0, and only where the last isn't the first

  __device__ std::uint32_t weight(std::int32_t at) const {
    return at == first ? first_weight : at == last ? last_weight : static_cast<std::uint32_t>(AreaShape::one);
  }
};

/// Of pixel `at`. Areas are wider than a pixel, so there are two ends.
__device__ AreaSpan area_span(std::int64_t at, std::int64_t factor) {
  const std::int64_t begin = at * factor;
  const std::int64_t end = begin + factor;
  const auto first = static_cast<std::int32_t>(begin / AreaShape::one);
  const auto last = static_cast<std::int32_t>((end - 1) / AreaShape::one);
  return {first, last, static_cast<std::uint32_t>((first + std::int64_t{1}) * AreaShape::one - begin),
          static_cast<std::uint32_t>(end - last * AreaShape::one)};
}

/// Makes pixel (x, y) of a rectangle.
__device__ void make_area(const AreaPiece& piece, std::uint32_t x, std::uint32_t y, std::int64_t factor,
                          const AreaMean& mean) {
  std::uint8_t pixel[3];
  if (piece.source == 0) {
    pixel[0] = pixel[1] = pixel[2] = static_cast<std::uint8_t>(piece.fill);
  } else {
    const AreaSpan across = area_span(std::int64_t{piece.x} + x, factor);
    const AreaSpan down = area_span(std::int64_t{piece.y} + y, factor);
    // Along a row the sums of weights times values stay below 2^32.
    std::uint64_t sums[3] = {0, 0, 0};
    const auto* row = reinterpret_cast<const std::uint8_t*>(piece.source) +
                      (down.first - std::int64_t{piece.source_y}) * piece.pitch +
                      (across.first - std::int64_t{piece.source_x}) * 3;
    for (std::int32_t j = down.first; j <= down.last; ++j, row += piece.pitch) {
      std::uint32_t red = 0;
      std::uint32_t green = 0;
      std::uint32_t blue = 0;
      const std::uint8_t* from = row;
      for (std::int32_t i = across.first; i <= across.last; ++i, from += 3) {
        const std::uint32_t weight = across.weight(i);
        red += weight * from[0];
        green += weight * from[1];
        blue += weight * from[2];
      }
      const std::uint64_t weight = down.weight(j);
      sums[0] += weight * red;
      sums[1] += weight * green;
      sums[2] += weight * blue;
    }
    for (unsigned channel = 0; channel < 3; ++channel) pixel[channel] = mean.mean(sums[channel]);
  }
  auto* const to = reinterpret_cast<std::uint8_t*>(piece.out) + y * piece.out_pitch;
  for (unsigned channel = 0; channel < 3; ++channel) {
    if (piece.plane == 0) {
      to[3 * x + channel] = pixel[channel];
    } else {
      to[channel * piece.plane + x] = pixel[channel];
    }
  }
}

/// A warp makes a row at a time, and some blocks share a rectangle.
__global__ void __launch_bounds__(AreaShape::threads)
    make_area_pieces(const AreaPiece* pieces, std::int64_t factor, AreaMean mean) {
  const AreaPiece piece = pieces[blockIdx.x / AreaShape::blocks_per_piece];
  constexpr unsigned warps = AreaShape::threads / 32;
  for (std::uint32_t y = blockIdx.x % AreaShape::blocks_per_piece * warps + threadIdx.x / 32; y < piece.height;
       y += AreaShape::blocks_per_piece * warps) {
    for (std::uint32_t x = threadIdx.x % 32; x < piece.width; x += 32) make_area(piece, x, y, factor, mean);
  }
}

/// Rows of any width: blocks side by side make one. \param across  of them in a row
__global__ void __launch_bounds__(AreaShape::threads)
    make_area_rows(const AreaPiece piece, std::uint32_t across, std::int64_t factor, AreaMean mean) {
  const std::uint32_t y = blockIdx.x / across;
  const std::uint32_t x = (blockIdx.x - y * across) * AreaShape::threads + threadIdx.x;
  if (x < piece.width) make_area(piece, x, y, factor, mean);
}

/// \throws std::invalid_argument unless `in` holds what `out` is made from.
AreaPiece area_piece(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
                     std::int64_t factor) {
  const Rect whole = {0, 0, out.image.width, out.image.height};
  if (out.format != rgb_format || in.format != rgb_format || factor <= AreaShape::one ||
      factor > 256 * AreaShape::one || out.image != AreaResampler::size_of(in.image, factor) || out.rect.width < 1 ||
      out.rect.height < 1 || !whole.contains(out.rect) ||
      !in.rect.contains(AreaResampler::source_of(out.rect, factor))) {
    throw std::invalid_argument("the views to resample don't belong together");
  }
  AreaPiece piece;
  piece.source = reinterpret_cast<std::uintptr_t>(in.data);
  piece.out = reinterpret_cast<std::uintptr_t>(out.data);
  piece.pitch = in.pitch;
  piece.out_pitch = out.pitch;
  piece.source_x = static_cast<std::int32_t>(in.rect.x);
  piece.source_y = static_cast<std::int32_t>(in.rect.y);
  piece.x = static_cast<std::int32_t>(out.rect.x);
  piece.y = static_cast<std::int32_t>(out.rect.y);
  piece.width = static_cast<std::uint32_t>(out.rect.width);
  piece.height = static_cast<std::uint32_t>(out.rect.height);
  return piece;
}

}  // namespace
}  // namespace slidestream::cuda
