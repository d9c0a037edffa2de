#pragma once

#include <cstdint>

#include "cuda/encode/block_coder.hpp"
#include "cuda/encode/encode_task.hpp"
#include "cuda/encode/forward_colour.hpp"

/// \file
/// A *band* of a tile: as many blocks as a thread block has threads, a thread a block. What is here is what one thread
/// does between two barriers; the kernel calls it for all threads at once, the host for one after the other.

namespace slidestream::cuda {

/// Words of a band's bits that are put together at a time.
inline constexpr std::uint32_t window_words = 1024;
/// Of the EOI marker after a scan.
inline constexpr std::uint32_t end_bytes = 2;
/// DC coefficients that are kept of the band before.
inline constexpr std::uint32_t kept_dc = 8;

/// The band of which the stuffed bytes aren't counted yet, because not all threads have seen theirs.
struct PendingBand {
  static constexpr std::uint32_t none = ~0U;
  std::uint32_t tile;
  std::uint32_t band;  ///< or none
  std::uint32_t bytes;
  std::uint32_t before;  ///< bytes of the tile's scan before it
};

/// What the threads of a band share: shared memory on the device.
template <std::uint32_t threads, std::uint32_t table_count, std::uint32_t sum_words, std::uint32_t sample_bytes>
struct alignas(16) BandMemory {
  std::uint32_t columns[column_words * threads];
  alignas(16) std::uint8_t samples[sample_bytes];
  std::uint32_t window[window_words];
  alignas(16) CodingTables tables[table_count];
  std::int32_t dc[kept_dc + threads];  ///< by the block's place in the stream
  std::uint32_t sums[sum_words];       ///< of the blocks' lengths
  std::uint32_t carried;               ///< the last word of the band before, if it isn't full
  std::uint32_t unit;                  ///< of scratch memory, where the band goes
  std::uint32_t stuffed;               ///< 0xFF bytes of the band
  alignas(8) TileSource sources[2];    ///< the tile under way, and the next, in turns
  PendingBand pending;                 ///< the first thread's own
};

/// The bits of a tile up to the end of a band.
struct BandExtent {
  std::uint32_t bits;   ///< with those of the last word that the band before left
  bool last;            ///< of the tile: the last byte is filled up with ones
  std::uint32_t words;  ///< whole ones, which go to scratch memory; all of the last band's
  std::uint32_t bytes;  ///< of those
  bool part;            ///< another word is left for the next band

  SLIDESTREAM_HOST_DEVICE BandExtent(std::uint32_t all_bits, bool is_last) : bits(all_bits), last(is_last) {
    bytes = is_last ? (all_bits + 7) / 8 : all_bits / 32 * 4;
    words = (bytes + 3) / 4;
    part = !is_last && (all_bits & 31U) != 0;
  }
  SLIDESTREAM_HOST_DEVICE std::uint32_t end() const { return words + (part ? 1 : 0); }
  SLIDESTREAM_HOST_DEVICE std::uint32_t units() const { return (words + 3) / 4; }
};

/// Tells the later kernels of the pending band, once all its bytes are counted.
template <class Memory>
SLIDESTREAM_HOST_DEVICE void finish_band(Memory& memory, const EncodeTask& task) {
  PendingBand& pending = memory.pending;
  if (pending.band == PendingBand::none) return;
  task.bands[std::uint64_t{pending.tile} * task.grid.bands + pending.band] = {memory.unit, pending.bytes,
                                                                              pending.before, 0};
  pending.before += pending.bytes + memory.stuffed;
  memory.stuffed = 0;
  if (pending.band + 1 == task.grid.bands) {
    task.lengths[pending.tile] = task.header_bytes + pending.before + end_bytes;
    pending.before = 0;
  }
  pending.band = PendingBand::none;
}

/// What bands of either kind have in common.
template <std::uint32_t thread_count, class MemoryOf>
struct BandSteps {
  using Memory = MemoryOf;
  static constexpr std::uint32_t threads = thread_count;

  SLIDESTREAM_HOST_DEVICE static WordPlace column_of(std::uint32_t thread, Memory& memory) {
    return WordPlace(memory.columns + thread);
  }

  /// Puts the thread's bits, which begin at bit `position` of the band, into the window that begins at `first_word`.
  SLIDESTREAM_HOST_DEVICE static void place(std::uint32_t thread, Memory& memory, std::uint32_t position,
                                            std::uint32_t length, std::uint32_t first_word) {
    std::uint32_t at = position / 32 - first_word;  // before the window: more than any word of it
    std::uint32_t rest = 0;
    const std::uint32_t* from = memory.columns + thread;
    SLIDESTREAM_ROLLED
    for (std::uint32_t left = (length + 31) / 32; left > 0; --left, ++at, from += threads) {
      const std::uint32_t bits = rest | shifted_right(*from, position);
      if (at < window_words) or_into(memory.window + at, bits);
      rest = shifted_out(*from, position);
    }
    if (at < window_words && rest != 0) or_into(memory.window + at, rest);
  }

  /// Fills the tile's last byte up with ones, when it is in the window.
  SLIDESTREAM_HOST_DEVICE static void fill_last_byte(Memory& memory, const BandExtent& extent,
                                                     std::uint32_t first_word) {
    const std::uint32_t at = extent.bits / 32 - first_word;
    if (!extent.last || (extent.bits & 7U) == 0 || at >= window_words) return;
    or_into(memory.window + at, ((1U << (8 - (extent.bits & 7U))) - 1) << (24 - (extent.bits & 24U)));
  }

  /// Takes the thread's share out of the window, to scratch memory. \returns how many bytes of it are 0xFF.
  SLIDESTREAM_HOST_DEVICE static std::uint32_t store(std::uint32_t thread, Memory& memory, std::uint32_t* scratch,
                                                     const BandExtent& extent, std::uint32_t first_word) {
    std::uint32_t stuffed = 0;
    std::uint32_t* const to = memory.unit == BandRecord::nowhere
                                  ? nullptr
                                  : scratch + std::uint64_t{memory.unit} * (BandRecord::unit_bytes / 4);
    const std::uint32_t end = extent.end() < first_word + window_words ? extent.end() : first_word + window_words;
    for (std::uint32_t i = first_word + thread; i < end; i += threads) {
      const std::uint32_t word = memory.window[i - first_word];
      memory.window[i - first_word] = 0;
      if (i >= extent.words) {
        memory.carried = word;
        continue;
      }
      const std::uint32_t inverted = ~word;
      stuffed += ((inverted & 0xFF000000U) == 0 ? 1 : 0) + ((inverted & 0xFF0000U) == 0 ? 1 : 0) +
                 ((inverted & 0xFF00U) == 0 ? 1 : 0) + ((inverted & 0xFFU) == 0 ? 1 : 0);
      if (to != nullptr) to[i] = choose_bytes(word, 0, 0x0123);
    }
    return stuffed;
  }
};

template <std::uint32_t threads>
using GreyMemory = BandMemory<threads, 1, threads / 32, 16>;

/// Of grey: blocks row by row, which is the stream's order.
template <std::uint32_t thread_count>
struct GreyBand : BandSteps<thread_count, GreyMemory<thread_count>> {
  using Memory = GreyMemory<thread_count>;
  using Steps = BandSteps<thread_count, Memory>;
  static constexpr std::uint32_t threads = thread_count;
  static constexpr std::uint32_t unit_width = 8;
  static constexpr std::uint32_t unit_height = 8;
  static constexpr std::uint32_t blocks = 1;       ///< a unit
  static constexpr std::uint32_t units = threads;  ///< a band
  static constexpr std::uint32_t table_count = 1;
  static constexpr bool colour = false;

  /// What a thread reads of a band: its block.
  struct Pixels {
    WordPair rows[8];
  };

  SLIDESTREAM_HOST_DEVICE static void fetch(std::uint32_t thread, const TileSource& source, const TileGrid& grid,
                                            std::uint32_t band, Pixels& pixels) {
    // Threads beyond the last block read that.
    const std::uint32_t wanted = band * units + thread;
    const std::uint32_t number = wanted < grid.count ? wanted : grid.count - 1;
    const std::uint32_t row = grid.row_of(number);
    const std::uint32_t x = 8 * (number - row * grid.across);
    if (source.plain != 0) {
      const std::uint8_t* const from = source.first + std::int64_t{8 * row} * source.pitch + x;
      SLIDESTREAM_UNROLL
      for (int y = 0; y < 8; ++y) pixels.rows[y] = load_pair(from + y * source.pitch);
      return;
    }
    SLIDESTREAM_UNROLL
    for (std::uint32_t y = 0; y < 8; ++y) {
      const std::uint32_t line = 8 * row + y < source.last_row ? 8 * row + y : source.last_row;
      const std::uint8_t* const from = source.first + std::int64_t{line} * source.pitch;
      std::uint32_t words[2] = {0, 0};
      SLIDESTREAM_UNROLL
      for (std::uint32_t i = 0; i < 8; ++i) {
        const std::uint32_t column = x + i < source.last_column ? x + i : source.last_column;
        words[i / 4] |= std::uint32_t{from[column]} << 8 * (i % 4);
      }
      pixels.rows[y] = {words[0], words[1]};
    }
  }

  SLIDESTREAM_HOST_DEVICE static WordPlace quantise(std::uint32_t thread, Memory& memory, const Pixels& pixels) {
    return quantise_block<static_cast<int>(threads)>(pixels.rows, memory.tables[0].reciprocals,
                                                     Steps::column_of(thread, memory), memory.dc[kept_dc + thread]);
  }

  /// \returns the bits of the thread's block; it has none when it is beyond the tile's last.
  SLIDESTREAM_HOST_DEVICE static std::uint32_t code(std::uint32_t thread, Memory& memory, const TileGrid& grid,
                                                    std::uint32_t band, WordPlace end) {
    if (band * units + thread >= grid.count) return 0;
    return code_block<static_cast<int>(threads)>(memory.dc[kept_dc + thread] - memory.dc[kept_dc + thread - 1],
                                                 Steps::column_of(thread, memory), end,
                                                 WordPlace(memory.tables[0].codes));
  }

  /// `sum` is that of the thread's warp up to its own block.
  SLIDESTREAM_HOST_DEVICE static void keep_sum(std::uint32_t thread, Memory& memory, std::uint32_t sum) {
    if (thread % 32 == 31) memory.sums[thread / 32] = sum;
  }

  /// \param before  the sum of the thread's warp before its block. \returns the bits of the band before it.
  /// \param total  the bits of the band.
  SLIDESTREAM_HOST_DEVICE static std::uint32_t position(std::uint32_t thread, const Memory& memory,
                                                        std::uint32_t before, std::uint32_t& total) {
    total = 0;
    SLIDESTREAM_UNROLL
    for (std::uint32_t warp = 0; warp < threads / 32; ++warp) {
      const std::uint32_t sum = memory.sums[warp];
      if (warp < thread / 32) before += sum;
      total += sum;
    }
    return before;
  }

  /// Keeps what the next band's DC differences are from.
  SLIDESTREAM_HOST_DEVICE static void keep_dc(std::uint32_t thread, Memory& memory) {
    if (thread == 0) memory.dc[kept_dc - 1] = memory.dc[kept_dc + threads - 1];
  }
};

inline constexpr std::uint32_t colour_mcus = 32;  ///< a band

/// What bands of colour have in common. \tparam Band  says each block's place in the stream.
template <class Band, std::uint32_t luminance_blocks, std::uint32_t all = (luminance_blocks + 2) * colour_mcus>
struct ColourBandSteps : BandSteps<all, BandMemory<all, 2, (luminance_blocks + 2) * 33, all * 64>> {
  using Steps = BandSteps<all, BandMemory<all, 2, (luminance_blocks + 2) * 33, all * 64>>;
  using Memory = typename Steps::Memory;
  static constexpr std::uint32_t blocks = luminance_blocks + 2;  ///< of a MCU
  static constexpr std::uint32_t units = colour_mcus;
  static constexpr std::uint32_t table_count = 2;
  static constexpr bool colour = true;
  static constexpr std::uint32_t first_chrominance = luminance_blocks * colour_mcus;
  static constexpr std::uint32_t chrominance_pitch = 8 * colour_mcus;
  static_assert(blocks <= kept_dc);

  SLIDESTREAM_HOST_DEVICE static std::uint32_t code(std::uint32_t thread, Memory& memory, const TileGrid& grid,
                                                    std::uint32_t band, WordPlace end) {
    const std::uint32_t at = Band::order(thread);
    if (band * units + at / blocks >= grid.count) return 0;
    const bool luminance = thread < first_chrominance;
    // The block of the same component before this one: the MCU's first follows the last of the MCU before.
    const std::uint32_t back = !luminance ? blocks : at % blocks == 0 ? 3 : 1;
    return code_block<static_cast<int>(all)>(memory.dc[kept_dc + at] - memory.dc[kept_dc + at - back],
                                             Steps::column_of(thread, memory), end,
                                             WordPlace(memory.tables[luminance ? 0 : 1].codes));
  }

  /// Of each warp: zero, and the sums up to each of its blocks.
  SLIDESTREAM_HOST_DEVICE static void keep_sum(std::uint32_t thread, Memory& memory, std::uint32_t sum) {
    memory.sums[thread / 32 * 33 + thread % 32 + 1] = sum;
    if (thread % 32 == 0) memory.sums[thread / 32 * 33] = 0;
  }

  SLIDESTREAM_HOST_DEVICE static void keep_dc(std::uint32_t thread, Memory& memory) {
    if (thread < blocks) memory.dc[kept_dc - 1 - thread] = memory.dc[kept_dc + all - 1 - thread];
  }

 protected:
  /// Eight interleaved pixels; beyond the image its last column and row.
  SLIDESTREAM_HOST_DEVICE static void fetch_row(const TileSource& source, std::uint32_t x, std::uint32_t y,
                                                std::uint32_t (&words)[6]) {
    if (source.plain != 0) {
      const std::uint8_t* const from = source.first + std::int64_t{y} * source.pitch + 3 * x;
      SLIDESTREAM_UNROLL
      for (std::uint32_t i = 0; i < 3; ++i) {
        const WordPair pair = load_pair(from + 8 * i);
        words[2 * i] = pair.first;
        words[2 * i + 1] = pair.second;
      }
      return;
    }
    const std::uint32_t line = y < source.last_row ? y : source.last_row;
    const std::uint8_t* const from = source.first + std::int64_t{line} * source.pitch;
    SLIDESTREAM_UNROLL
    for (std::uint32_t i = 0; i < 6; ++i) words[i] = 0;
    SLIDESTREAM_UNROLL
    for (std::uint32_t i = 0; i < 24; ++i) {
      const std::uint32_t column = x + i / 3 < source.last_column ? x + i / 3 : source.last_column;
      words[i / 4] |= std::uint32_t{from[3 * column + i % 3]} << 8 * (i % 4);
    }
  }
};

/// Of colour: 32 MCUs. Threads 0 to 63 have the upper row of their luminance blocks, 64 to 127 the lower one, then come
/// the blocks of Cb and of Cr. Samples lie in shared memory as if the MCUs were side by side.
struct ColourBand : ColourBandSteps<ColourBand, 4> {
  static constexpr std::uint32_t unit_width = 16;
  static constexpr std::uint32_t unit_height = 16;
  static constexpr std::uint32_t luminance_pitch = 16 * colour_mcus;
  static constexpr std::uint32_t blue_samples = 16 * luminance_pitch;
  static constexpr std::uint32_t red_samples = blue_samples + 8 * chrominance_pitch;
  static constexpr std::uint32_t patches = 16 * colour_mcus;  ///< of 8 x 2 pixels
  static constexpr std::uint32_t patches_across = 2 * colour_mcus;
  static constexpr std::uint32_t patches_a_thread = (patches + threads - 1) / threads;

  /// What a thread reads of a band: patches of two rows of eight interleaved pixels.
  struct Pixels {
    std::uint32_t words[patches_a_thread][2][6];
  };

  SLIDESTREAM_HOST_DEVICE static void fetch(std::uint32_t thread, const TileSource& source, const TileGrid& grid,
                                            std::uint32_t band, Pixels& pixels) {
    SLIDESTREAM_UNROLL
    for (std::uint32_t k = 0; k < patches_a_thread; ++k) {
      // All read something, so that no register has to keep what was in it.
      const std::uint32_t wanted = thread + k * threads;
      const std::uint32_t patch = wanted < patches ? wanted : patches - 1;
      const std::uint32_t across = patch % patches_across;
      const std::uint32_t wanted_mcu = band * units + across / 2;
      const std::uint32_t mcu = wanted_mcu < grid.count ? wanted_mcu : grid.count - 1;
      const std::uint32_t mcu_row = grid.row_of(mcu);
      const std::uint32_t x = 16 * (mcu - mcu_row * grid.across) + 8 * (across % 2);
      const std::uint32_t y = 16 * mcu_row + 2 * (patch / patches_across);
      SLIDESTREAM_UNROLL
      for (std::uint32_t h = 0; h < 2; ++h) fetch_row(source, x, y + h, pixels.words[k][h]);
    }
  }

  /// The patch's samples, from registers to shared memory.
  SLIDESTREAM_HOST_DEVICE static void convert(std::uint32_t thread, Memory& memory, const Pixels& pixels) {
    SLIDESTREAM_UNROLL
    for (std::uint32_t k = 0; k < patches_a_thread; ++k) {
      const std::uint32_t patch = thread + k * threads;
      if (patch >= patches) continue;
      const std::uint32_t across = patch % patches_across;
      const std::uint32_t down = patch / patches_across;
      FourPixels converted[2][2];
      SLIDESTREAM_UNROLL
      for (std::uint32_t h = 0; h < 2; ++h) {
        const std::uint32_t(&words)[6] = pixels.words[k][h];
        converted[h][0] = convert_four(words[0], words[1], words[2]);
        converted[h][1] = convert_four(words[3], words[4], words[5]);
        *reinterpret_cast<WordPair*>(memory.samples + (2 * down + h) * luminance_pitch + 8 * across) = {
            luminance_bytes(converted[h][0]), luminance_bytes(converted[h][1])};
      }
      std::uint8_t* const chrominance = memory.samples + blue_samples + down * chrominance_pitch + 4 * across;
      *reinterpret_cast<std::uint32_t*>(chrominance) = downsampled(converted[0][0].blue, converted[1][0].blue) |
                                                       downsampled(converted[0][1].blue, converted[1][1].blue) << 16;
      *reinterpret_cast<std::uint32_t*>(chrominance + red_samples - blue_samples) =
          downsampled(converted[0][0].red, converted[1][0].red) | downsampled(converted[0][1].red, converted[1][1].red)
                                                                      << 16;
    }
  }

  SLIDESTREAM_HOST_DEVICE static WordPlace quantise(std::uint32_t thread, Memory& memory, const Pixels& /*pixels*/) {
    const bool luminance = thread < first_chrominance;
    const std::uint32_t in_row = luminance ? thread % (2 * colour_mcus) : thread % colour_mcus;
    const std::uint32_t pitch = luminance ? luminance_pitch : chrominance_pitch;
    const std::uint32_t row = luminance ? thread / (2 * colour_mcus) : 0;
    const std::uint32_t first = luminance ? 0 : thread < first_chrominance + colour_mcus ? blue_samples : red_samples;
    const std::uint8_t* const from = memory.samples + first + 8 * row * pitch + 8 * in_row;
    WordPair samples[8];
    SLIDESTREAM_UNROLL
    for (std::uint32_t y = 0; y < 8; ++y) samples[y] = *reinterpret_cast<const WordPair*>(from + y * pitch);
    return quantise_block<static_cast<int>(threads)>(samples, memory.tables[luminance ? 0 : 1].reciprocals,
                                                     column_of(thread, memory), memory.dc[kept_dc + order(thread)]);
  }

  SLIDESTREAM_HOST_DEVICE static std::uint32_t position(std::uint32_t thread, const Memory& memory,
                                                        std::uint32_t before, std::uint32_t& total) {
    // Warps 0 and 1 have the upper blocks of luminance, 2 and 3 the lower ones, 4 Cb, 5 Cr.
    const auto sum = [&](std::uint32_t warp, std::uint32_t blocks) { return memory.sums[warp * 33 + blocks]; };
    const std::uint32_t first_half = sum(0, 32) + sum(2, 32);
    total = first_half + sum(1, 32) + sum(3, 32) + sum(4, 32) + sum(5, 32);
    if (thread < first_chrominance) {
      const std::uint32_t half = thread / 32 % 2;
      const std::uint32_t in_half = thread % 32 / 2;
      const std::uint32_t mcu = half * 16 + in_half;
      const bool upper = thread < first_chrominance / 2;
      const std::uint32_t other = upper ? sum(2 + half, 2 * in_half) : sum(half, 2 * in_half + 2);
      return before + other + sum(4, mcu) + sum(5, mcu) + (half != 0 ? first_half : 0);
    }
    const std::uint32_t mcu = thread % 32;
    const std::uint32_t half = mcu / 16;
    const std::uint32_t through = 2 * (mcu % 16) + 2;
    const std::uint32_t other = thread < first_chrominance + colour_mcus ? sum(5, mcu) : sum(4, mcu + 1);
    return before + other + sum(half, through) + sum(2 + half, through) + (half != 0 ? first_half : 0);
  }

  /// A block's place in the stream.
  SLIDESTREAM_HOST_DEVICE static std::uint32_t order(std::uint32_t thread) {
    if (thread < first_chrominance) {
      const std::uint32_t across = thread % (2 * colour_mcus);
      return across / 2 * 6 + thread / (2 * colour_mcus) * 2 + across % 2;
    }
    const std::uint32_t block = thread - first_chrominance;
    return block % colour_mcus * 6 + 4 + block / colour_mcus;
  }
};

}  // namespace slidestream::cuda
