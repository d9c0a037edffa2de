#pragma once

#include <array>
#include <cstdint>
#include <cstring>

/// \file
/// What the code-block decoder looks up: contexts by neighbourhood (ISO/IEC 15444-1, tables D.1 to D.4) and the MQ
/// decoder's states (table C.2), made once on the host.

namespace slidestream::cuda {

/// The table's parts, bytes from its beginning. One of 2 KiB holds zero coding and refinement: their indices leave bits
/// free that tell them apart.
struct MqTables {
  static constexpr std::uint32_t part = 2048;
  static constexpr std::uint32_t zero_coding = 0;  ///< for LL and LH; the index's free bits are added for others
  static constexpr std::uint32_t zero_coding_hl = 0x80;
  static constexpr std::uint32_t zero_coding_hh = 0x20;
  static constexpr std::uint32_t refinement = 0xA0;
  static constexpr std::uint32_t signs = part;
  static constexpr std::uint32_t states = 2 * part;     ///< a word each, two a state: for either likely symbol
  static constexpr std::uint32_t other = states + 376;  ///< contexts of run-length decisions, then of uniform ones
  static constexpr std::uint32_t bytes = states + 384;

  static constexpr std::uint32_t run_length_context = 17;
  static constexpr std::uint32_t uniform_context = 18;
  static constexpr std::uint32_t contexts = 19;
};

/// A state with its likely symbol: the less likely one's part of the interval in the upper half; where it goes after
/// the less likely symbol, and after the likely one, in units of words; the symbol.
constexpr std::uint32_t mq_state_word(std::uint32_t interval, std::uint32_t likely, std::uint32_t after_likely,
                                      std::uint32_t after_unlikely, bool switches) {
  return interval << 16 | (after_unlikely * 2 + (switches ? 1 - likely : likely)) << 9 |
         (after_likely * 2 + likely) << 2 | likely;
}

/// The contexts' first states (table D.7): state 4 for the first, 3 for run-length, 46 for uniform, 0 for others.
constexpr std::uint32_t first_mq_state(std::uint32_t context) {
  if (context == 0) return mq_state_word(0x0521, 0, 5, 29, false);
  if (context == MqTables::run_length_context) return mq_state_word(0x0AC1, 0, 4, 12, false);
  if (context == MqTables::uniform_context) return mq_state_word(0x5601, 0, 46, 46, false);
  return mq_state_word(0x5601, 0, 1, 1, true);
}

/// All of the table.
std::array<std::uint8_t, MqTables::bytes> make_mq_tables();

}  // namespace slidestream::cuda
