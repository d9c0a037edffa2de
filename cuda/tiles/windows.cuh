#pragma once

#include "cuda/tiles/windows.hpp"

/// \file
/// The kernel of `place_windows`. Included where kernels are compiled, and by what runs them on the host.

namespace slidestream::cuda {
namespace {

/// A warp writes a row at a time, and some blocks share a rectangle.
constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kBlocksPerPiece = 8;

__device__ bool is_aligned(const void* at, std::uintptr_t bytes) {
  return reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
}

/// `bytes` of a row, or so many times a value where there is no source.
__device__ void copy_row(std::uint8_t* to, const std::uint8_t* from, std::uint32_t bytes, std::uint32_t fill,
                         unsigned lane) {
  std::uint32_t done = 0;
  if (is_aligned(to, 16) && (from == nullptr || is_aligned(from, 16))) {
    const std::uint32_t four = fill * 0x01010101U;
    for (std::uint32_t i = lane; i < bytes / 16; i += 32) {
      reinterpret_cast<uint4*>(to)[i] =
          from == nullptr ? uint4{four, four, four, four} : reinterpret_cast<const uint4*>(from)[i];
    }
    done = bytes / 16 * 16;
  }
  for (std::uint32_t i = done + lane; i < bytes; i += 32) {
    to[i] = from == nullptr ? static_cast<std::uint8_t>(fill) : from[i];
  }
}

/// `count` pixels of a row to three planes.
__device__ void split_row(std::uint8_t* to, std::size_t plane, const std::uint8_t* from, std::uint32_t count,
                          unsigned lane) {
  std::uint32_t done = 0;
  if (is_aligned(to, 4) && is_aligned(from, 4) && plane % 4 == 0) {
    for (std::uint32_t i = lane; i < count / 4; i += 32) {
      const auto* words = reinterpret_cast<const unsigned*>(from) + 3 * i;
      // Bytes from the lowest on: r0 g0 b0 r1, g1 b1 r2 g2, b2 r3 g3 b3.
      const unsigned a = words[0];
      const unsigned b = words[1];
      const unsigned c = words[2];
      reinterpret_cast<unsigned*>(to)[i] = __byte_perm(__byte_perm(a, b, 0x0630), c, 0x5210);
      reinterpret_cast<unsigned*>(to + plane)[i] = __byte_perm(__byte_perm(a, b, 0x0741), c, 0x6210);
      reinterpret_cast<unsigned*>(to + 2 * plane)[i] = __byte_perm(__byte_perm(a, b, 0x0052), c, 0x7410);
    }
    done = count / 4 * 4;
  }
  for (std::uint32_t i = done + lane; i < count; i += 32) {
    to[i] = from[3 * i];
    to[plane + i] = from[3 * i + 1];
    to[2 * plane + i] = from[3 * i + 2];
  }
}

__global__ void __launch_bounds__(kThreads)
    place_pieces(const std::uint8_t* decoded, const WindowPiece* pieces, WindowShape shape) {
  const WindowPiece piece = pieces[blockIdx.x / kBlocksPerPiece];
  const unsigned lane = threadIdx.x % 32;
  const std::size_t plane = std::size_t{shape.width} * shape.height;
  for (std::uint32_t y = blockIdx.x % kBlocksPerPiece * kWarps + threadIdx.x / 32; y < piece.height;
       y += kBlocksPerPiece * kWarps) {
    const std::uint8_t* from =
        piece.source == WindowPiece::value ? nullptr : decoded + piece.source + std::size_t{y} * piece.pitch;
    const std::size_t at = std::size_t{piece.y + y} * shape.width + piece.x;
    auto* window = reinterpret_cast<std::uint8_t*>(piece.window);
    if (!shape.planar) {
      copy_row(window + 3 * at, from, 3 * piece.width, piece.fill, lane);
    } else if (from == nullptr) {
      for (unsigned channel = 0; channel < 3; ++channel) {
        copy_row(window + channel * plane + at, nullptr, piece.width, piece.fill, lane);
      }
    } else {
      split_row(window + at, plane, from, piece.width, lane);
    }
  }
}

}  // namespace
}  // namespace slidestream::cuda
