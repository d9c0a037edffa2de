#pragma once

#include <cuda_runtime.h>

#include "codec/luminance.hpp"
#include "cuda/colour/convert_colour.hpp"

/// \file
/// How kernels convert pixels: by a matrix, whose tables a block keeps in shared memory, or by what every colour
/// becomes, which stands in memory.

namespace slidestream::cuda {
namespace {

enum class ColoursBy : std::uint8_t {
  file,    ///< they stay
  matrix,  ///< tables in shared memory, and arithmetic
  every,   ///< `DeviceColours::every`
};

/// How `colours` are converted.
inline ColoursBy colours_by(const DeviceColours& colours) {
  if (colours.program == nullptr) return ColoursBy::file;
  return colours.is_matrix ? ColoursBy::matrix : ColoursBy::every;
}

/// Copies a conversion's tables to shared memory. All `threads` of a block come by.
template <unsigned threads>
__device__ __forceinline__ void load_tables(ColourTables& shared, const ColourProgram* program) {
  constexpr unsigned words = sizeof(ColourTables) / sizeof(uint4);
  static_assert(sizeof(ColourTables) % sizeof(uint4) == 0);
  const auto* const from = reinterpret_cast<const uint4*>(&program->tables);
  auto* const to = reinterpret_cast<uint4*>(&shared);
  for (unsigned i = threadIdx.x; i < words; i += threads) to[i] = from[i];
  __syncthreads();
}

/// Converts pixels. \tparam by  not `file`
template <ColoursBy by>
struct PixelConverter {
  const DeviceColours& colours;
  const ColourTables* tables;  ///< in shared memory, where there is a matrix

  __device__ __forceinline__ std::uint32_t packed_of(const Rgb& from) const {
    if constexpr (by == ColoursBy::matrix) {
      return packed(converted_by_matrix(*tables, colours.factors, from));
    } else {
      return colours.every[number_of(from)];
    }
  }

  __device__ __forceinline__ Rgb of(const Rgb& from) const { return unpacked(packed_of(from)); }

  /// Four interleaved pixels in place. \returns their luminance
  __device__ __forceinline__ std::uint32_t convert_four(std::uint32_t* words) const {
    const std::uint32_t first = words[0], second = words[1], third = words[2];
    const std::uint32_t from[4] = {first, first >> 24 | second << 8, second >> 16 | third << 16, third >> 8};
    std::uint32_t to[4];
    std::uint32_t grey = 0;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      to[i] = packed_of(unpacked(from[i]));
      grey |= std::uint32_t{luminance(to[i] & 255U, to[i] >> 8 & 255U, to[i] >> 16)} << (8 * i);
    }
    words[0] = to[0] | to[1] << 24;
    words[1] = to[1] >> 8 | to[2] << 16;
    words[2] = to[2] >> 16 | to[3] << 8;
    return grey;
  }
};

}  // namespace
}  // namespace slidestream::cuda
