#pragma once

#include <cuda_runtime.h>

#include "codec/luminance.hpp"
#include "cuda/colour/convert_colour.hpp"
#include "cuda/device/primitives.cuh"

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

/// A conversion's tables as a block keeps them in shared memory: each value many times, so that lanes don't wait for
/// each other. A row has the word of one of `CodeIntervals` for each lane. Behind that, rows below 256 have what the
/// first table says of a red sample for each lane, rows from there on what the others say of a green one and of a blue
/// one, for each pair of lanes.
struct SharedColours {
  static constexpr unsigned rows = 512;
  static constexpr unsigned row_bytes = 256;
  /// Where they lie, beside the highest byte of all places: so a place is put together of bytes.
  static constexpr unsigned first_place = 1024;
  static constexpr unsigned bytes = rows * row_bytes + first_place;  ///< of dynamic shared memory, at most
};

/// Fills `SharedColours` at the begin of the block's dynamic shared memory. All `threads` of a block come by.
/// \returns the highest byte of their places
template <unsigned threads>
__device__ __forceinline__ unsigned load_tables(const ColourTables& tables) {
  unsigned char* const memory = block_memory();
  const unsigned place = shared_address(memory);
  constexpr unsigned below_highest = 0xFFFFFFU;
  auto* const words = reinterpret_cast<std::uint32_t*>(memory + (SharedColours::first_place - (place & below_highest)));
  for (unsigned i = threadIdx.x; i < SharedColours::rows * SharedColours::row_bytes / 4; i += threads) {
    const unsigned row = i / 64, column = i % 64;
    if (column < 32) {
      words[i] = tables.codes[min(row, CodeIntervals::count - 1)];
    } else {
      words[i] = __float_as_uint(tables.first[row < 256 ? 0 : column / 16 - 1][row % 256]);
    }
  }
  __syncthreads();
  return place & ~below_highest;
}

/// Converts pixels. \tparam by  not `file`
template <ColoursBy by>
struct PixelConverter {
  const DeviceColours& colours;
  // Where there is a matrix: a lane's places in the first row of `SharedColours`, of codes, and of a pair's samples.
  unsigned of_codes = 0;
  unsigned of_pairs = 0;

  /// \param tables  what `load_tables` returned
  __device__ __forceinline__ PixelConverter(const DeviceColours& all, unsigned tables) : colours(all) {
    if constexpr (by == ColoursBy::matrix) {
      const unsigned lane = threadIdx.x % 32;
      of_codes = keep_in_register(keep(tables + 4 * lane));
      of_pairs = keep_in_register(keep(tables + 128 + lane / 2 * 4));
    }
  }

  /// sRGB's codes of a pixel, each as `add_code` has it. \tparam red_byte,green_byte,blue_byte  numbers of the
  /// bytes of `red`, `green` and `blue` that its samples are
  template <unsigned red_byte, unsigned green_byte, unsigned blue_byte>
  __device__ __forceinline__ void codes_of(std::uint32_t red, std::uint32_t green, std::uint32_t blue,
                                           std::uint32_t* codes) const {
    constexpr unsigned begin = SharedColours::first_place;
    constexpr unsigned row_256 = 256 * SharedColours::row_bytes;
    const auto value = [&](std::uint32_t word, unsigned byte, unsigned lanes, unsigned behind) {
      return __uint_as_float(load_constant(__byte_perm(word, lanes, 0x7504 | byte << 4) + (begin + behind)));
    };
    const ColourValues v = {value(red, red_byte, of_codes, 128), value(green, green_byte, of_pairs, row_256),
                            value(blue, blue_byte, of_pairs, row_256 + 64)};
#pragma unroll
    for (unsigned i = 0; i < 3; ++i) {
      const float light = light_in_range(row_of(colours.factors + 3 * i, v));
      const std::uint32_t place = __byte_perm(interval_bits(light), of_codes, 0x7324);
      codes[i] = add_code(load_constant(place + (begin - CodeIntervals::first * SharedColours::row_bytes)), light);
    }
  }

  __device__ __forceinline__ Rgb of(const Rgb& from) const {
    if constexpr (by == ColoursBy::matrix) {
      std::uint32_t codes[3];
      const std::uint32_t all = packed(from);
      codes_of<0, 1, 2>(all, all, all, codes);
      return {static_cast<std::uint8_t>(codes[0] >> code_shift), static_cast<std::uint8_t>(codes[1] >> code_shift),
              static_cast<std::uint8_t>(codes[2] >> code_shift)};
    } else {
      return unpacked(colours.every[number_of(from)]);
    }
  }

  /// Four interleaved pixels from the codes of all.
  /// \returns their luminance
  static __device__ __forceinline__ std::uint32_t interleave_codes(const std::uint32_t (&codes)[12],
                                                                   std::uint32_t* words) {
#pragma unroll
    for (unsigned i = 0; i < 3; ++i) {
      const std::uint32_t* const four = codes + 4 * i;
      // Upper halves: codes begin with bit 7 of each.
      const std::uint32_t even = __byte_perm(four[0], four[2], 0x7632);
      const std::uint32_t odd = __byte_perm(four[1], four[3], 0x7632);
      words[i] = (even >> 7 & 0x00FF00FFU) | (odd << 1 & 0xFF00FF00U);
    }
    std::uint32_t grey = 0;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t* const pixel = codes + 3 * i;
      grey |= std::uint32_t{luminance(pixel[0] >> code_shift, pixel[1] >> code_shift, pixel[2] >> code_shift)}
              << (8 * i);
    }
    return grey;
  }

  /// Four interleaved pixels of samples that are the third bytes of words.
  /// \returns their luminance
  __device__ __forceinline__ std::uint32_t convert_four(const std::uint32_t (&samples)[4][3],
                                                        std::uint32_t* words) const {
    static_assert(by == ColoursBy::matrix);
    std::uint32_t codes[12];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      codes_of<2, 2, 2>(samples[i][0], samples[i][1], samples[i][2], codes + 3 * i);
    }
    return interleave_codes(codes, words);
  }

  /// Four interleaved pixels in place. \returns their luminance
  __device__ __forceinline__ std::uint32_t convert_four(std::uint32_t* words) const {
    const std::uint32_t first = words[0], second = words[1], third = words[2];
    std::uint32_t grey = 0;
    if constexpr (by == ColoursBy::matrix) {
      std::uint32_t codes[12];
      codes_of<0, 1, 2>(first, first, first, codes);
      codes_of<3, 0, 1>(first, second, second, codes + 3);
      codes_of<2, 3, 0>(second, second, third, codes + 6);
      codes_of<1, 2, 3>(third, third, third, codes + 9);
      grey = interleave_codes(codes, words);
    } else {
      const std::uint32_t from[4] = {first, first >> 24 | second << 8, second >> 16 | third << 16, third >> 8};
      std::uint32_t to[4];
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        to[i] = colours.every[number_of(unpacked(from[i]))];
        grey |= std::uint32_t{luminance(to[i] & 255U, to[i] >> 8 & 255U, to[i] >> 16)} << (8 * i);
      }
      words[0] = to[0] | to[1] << 24;
      words[1] = to[1] >> 8 | to[2] << 16;
      words[2] = to[2] >> 16 | to[3] << 8;
    }
    return grey;
  }
};

}  // namespace
}  // namespace slidestream::cuda
