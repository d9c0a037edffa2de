#pragma once

#include <cstdint>

#include "cuda/encode/band.hpp"

/// \file
/// Bands of colour whose MCUs are one row of blocks high: 4:2:2 and 4:4:4.

namespace slidestream::cuda {

/// 32 MCUs. The first threads have the luminance blocks from left to right, `across` a MCU, then come the blocks of Cb
/// and of Cr. Samples lie in shared memory as if the MCUs were side by side.
/// \tparam across  2: Cb and Cr are halved from left to right (4:2:2); 1: they are whole (4:4:4).
template <std::uint32_t across>
struct RowBand : ColourBandSteps<RowBand<across>, across> {
  using Steps = ColourBandSteps<RowBand<across>, across>;
  using Steps::blocks, Steps::threads, Steps::units, Steps::first_chrominance, Steps::chrominance_pitch;
  using typename Steps::Memory;
  static constexpr std::uint32_t unit_width = 8 * across;
  static constexpr std::uint32_t unit_height = 8;
  static constexpr std::uint32_t luminance_pitch = 8 * across * colour_mcus;
  static constexpr std::uint32_t blue_samples = 8 * luminance_pitch;
  static constexpr std::uint32_t red_samples = blue_samples + 8 * chrominance_pitch;
  static constexpr std::uint32_t patches_across = across * colour_mcus;
  static constexpr std::uint32_t patches = 8 * patches_across;  ///< of 8 pixels of a row
  static constexpr std::uint32_t patches_a_thread = (patches + threads - 1) / threads;

  /// What a thread reads of a band: patches of eight interleaved pixels.
  struct Pixels {
    std::uint32_t words[patches_a_thread][6];
  };

  SLIDESTREAM_HOST_DEVICE static void fetch(std::uint32_t thread, const TileSource& source, const TileGrid& grid,
                                            std::uint32_t band, Pixels& pixels) {
    SLIDESTREAM_UNROLL
    for (std::uint32_t k = 0; k < patches_a_thread; ++k) {
      // All read something, so that no register has to keep what was in it.
      const std::uint32_t wanted = thread + k * threads;
      const std::uint32_t patch = wanted < patches ? wanted : patches - 1;
      const std::uint32_t column = patch % patches_across;
      const std::uint32_t wanted_mcu = band * units + column / across;
      const std::uint32_t mcu = wanted_mcu < grid.count ? wanted_mcu : grid.count - 1;
      const std::uint32_t mcu_row = grid.row_of(mcu);
      const std::uint32_t x = unit_width * (mcu - mcu_row * grid.across) + 8 * (column % across);
      Steps::fetch_row(source, x, 8 * mcu_row + patch / patches_across, pixels.words[k]);
    }
  }

  /// The patch's samples, from registers to shared memory.
  SLIDESTREAM_HOST_DEVICE static void convert(std::uint32_t thread, Memory& memory, const Pixels& pixels) {
    SLIDESTREAM_UNROLL
    for (std::uint32_t k = 0; k < patches_a_thread; ++k) {
      const std::uint32_t patch = thread + k * threads;
      if (patch >= patches) continue;
      const std::uint32_t column = patch % patches_across;
      const std::uint32_t row = patch / patches_across;
      const std::uint32_t(&words)[6] = pixels.words[k];
      const FourPixels left = convert_four(words[0], words[1], words[2]);
      const FourPixels right = convert_four(words[3], words[4], words[5]);
      *reinterpret_cast<WordPair*>(memory.samples + row * luminance_pitch + 8 * column) = {luminance_bytes(left),
                                                                                           luminance_bytes(right)};
      std::uint8_t* const blue = memory.samples + blue_samples + row * chrominance_pitch + 8 * column / across;
      std::uint8_t* const red = blue + (red_samples - blue_samples);
      if constexpr (across == 1) {
        *reinterpret_cast<WordPair*>(blue) = {chrominance_bytes(left.blue), chrominance_bytes(right.blue)};
        *reinterpret_cast<WordPair*>(red) = {chrominance_bytes(left.red), chrominance_bytes(right.red)};
      } else {
        *reinterpret_cast<std::uint32_t*>(blue) = halved(left.blue) | halved(right.blue) << 16;
        *reinterpret_cast<std::uint32_t*>(red) = halved(left.red) | halved(right.red) << 16;
      }
    }
  }

  SLIDESTREAM_HOST_DEVICE static WordPlace quantise(std::uint32_t thread, Memory& memory, const Pixels& /*pixels*/) {
    const bool luminance = thread < first_chrominance;
    const std::uint32_t in_row = luminance ? thread : thread % colour_mcus;
    const std::uint32_t pitch = luminance ? luminance_pitch : chrominance_pitch;
    const std::uint32_t first = luminance ? 0 : thread < first_chrominance + colour_mcus ? blue_samples : red_samples;
    const std::uint8_t* const from = memory.samples + first + 8 * in_row;
    WordPair samples[8];
    SLIDESTREAM_UNROLL
    for (std::uint32_t y = 0; y < 8; ++y) samples[y] = *reinterpret_cast<const WordPair*>(from + y * pitch);
    return quantise_block<static_cast<int>(threads)>(samples, memory.tables[luminance ? 0 : 1].reciprocals,
                                                     Steps::column_of(thread, memory),
                                                     memory.dc[kept_dc + order(thread)]);
  }

  SLIDESTREAM_HOST_DEVICE static std::uint32_t position(std::uint32_t thread, const Memory& memory,
                                                        std::uint32_t before, std::uint32_t& total) {
    // Of the warps behind those of luminance one has Cb, the last one Cr.
    const auto sum = [&](std::uint32_t warp, std::uint32_t count) { return memory.sums[warp * 33 + count]; };
    total = 0;
    SLIDESTREAM_UNROLL
    for (std::uint32_t warp = 0; warp < blocks; ++warp) total += sum(warp, 32);
    if (thread < first_chrominance) {
      const std::uint32_t mcu = thread / across;
      SLIDESTREAM_UNROLL
      for (std::uint32_t warp = 0; warp < across; ++warp) {
        if (warp < thread / 32) before += sum(warp, 32);
      }
      return before + sum(across, mcu) + sum(across + 1, mcu);
    }
    const std::uint32_t mcu = thread % 32;
    SLIDESTREAM_UNROLL
    for (std::uint32_t warp = 0; warp < across; ++warp) {
      // Luminance through this MCU.
      const std::uint32_t through = across * (mcu + 1);
      if (through > 32 * warp) before += sum(warp, through - 32 * warp < 32 ? through - 32 * warp : 32);
    }
    return before + (thread < first_chrominance + colour_mcus ? sum(across + 1, mcu) : sum(across, mcu + 1));
  }

  /// A block's place in the stream.
  SLIDESTREAM_HOST_DEVICE static std::uint32_t order(std::uint32_t thread) {
    if (thread < first_chrominance) return thread / across * blocks + thread % across;
    const std::uint32_t block = thread - first_chrominance;
    return block % colour_mcus * blocks + across + block / colour_mcus;
  }
};

using HalvedBand = RowBand<2>;
using WholeColourBand = RowBand<1>;

}  // namespace slidestream::cuda
