#include "cuda/jpeg2000/mq_tables.hpp"

#include <algorithm>

namespace slidestream::cuda {
namespace {

constexpr unsigned mq_states = 47;

constexpr std::uint16_t intervals[mq_states] = {
    0x5601, 0x3401, 0x1801, 0x0AC1, 0x0521, 0x0221, 0x5601, 0x5401, 0x4801, 0x3801, 0x3001, 0x2401,
    0x1C01, 0x1601, 0x5601, 0x5401, 0x5101, 0x4801, 0x3801, 0x3401, 0x3001, 0x2801, 0x2401, 0x2201,
    0x1C01, 0x1801, 0x1601, 0x1401, 0x1201, 0x1101, 0x0AC1, 0x09C1, 0x08A1, 0x0521, 0x0441, 0x02A1,
    0x0221, 0x0141, 0x0111, 0x0085, 0x0049, 0x0025, 0x0015, 0x0009, 0x0005, 0x0001, 0x5601};
constexpr std::uint8_t after_likely[mq_states] = {1,  2,  3,  4,  5,  38, 7,  8,  9,  10, 11, 12, 13, 29, 15, 16,
                                                  17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
                                                  33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 45, 46};
constexpr std::uint8_t after_unlikely[mq_states] = {1,  6,  9,  12, 29, 33, 6,  14, 14, 14, 17, 18, 20, 21, 14, 14,
                                                    15, 16, 17, 18, 19, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
                                                    30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 46};

/// A neighbourhood is a window of twelve bits of the significance mask, four a column: the column before, the
/// coefficient's own and the one behind, the row above first. The fourth bits are free for other uses.
struct Neighbourhood {
  unsigned index;

  int bit(unsigned i) const { return static_cast<int>(index >> i & 1U); }
  int beside() const { return bit(1) + bit(9); }
  int above_and_below() const { return bit(4) + bit(6); }
  int diagonal() const { return bit(0) + bit(2) + bit(8) + bit(10); }
};

/// Table D.1, LL and LH.
int zero_coding_context(int horizontal, int vertical, int diagonal) {
  if (horizontal == 2) return 8;
  if (horizontal == 1) return vertical > 0 ? 7 : diagonal > 0 ? 6 : 5;
  if (vertical > 0) return vertical == 2 ? 4 : 3;
  return std::min(diagonal, 2);
}

/// Table D.1, HH.
int diagonal_context(int beside, int diagonal) {
  if (diagonal >= 3) return 8;
  if (diagonal == 2) return beside > 0 ? 7 : 6;
  if (diagonal == 1) return std::min(beside, 2) + 3;
  return std::min(beside, 2);
}

/// Bit 7 is set for refinement and for HL, bit 5 for refinement and for HH.
int context_of(const Neighbourhood& n) {
  const bool high = n.bit(7) != 0, low = n.bit(5) != 0;
  if (high && low) {  // table D.4; bit 3: refined before
    if (n.bit(3) != 0) return 16;
    return n.beside() + n.above_and_below() + n.diagonal() > 0 ? 15 : 14;
  }
  if (high) return zero_coding_context(n.above_and_below(), n.beside(), n.diagonal());
  if (low) return diagonal_context(n.beside() + n.above_and_below(), n.diagonal());
  return zero_coding_context(n.beside(), n.above_and_below(), n.diagonal());
}

/// Tables D.2 and D.3: the context, and in bit 7 whether the decision is turned over. A neighbour's sign stands one bit
/// above its significance.
unsigned sign_context(const Neighbourhood& n) {
  const auto one = [&n](unsigned at) { return n.bit(at) == 0 ? 0 : n.bit(at + 1) != 0 ? -1 : 1; };
  int horizontal = std::clamp(one(1) + one(9), -1, 1);
  int vertical = std::clamp(one(4) + one(6), -1, 1);
  const bool turned = horizontal < 0 || (horizontal == 0 && vertical < 0);
  if (turned) {
    horizontal = -horizontal;
    vertical = -vertical;
  }
  return static_cast<unsigned>((horizontal == 1 ? 12 : 9) + vertical) | (turned ? 0x80U : 0U);
}

}  // namespace

std::array<std::uint8_t, MqTables::bytes> make_mq_tables() {
  std::array<std::uint8_t, MqTables::bytes> table{};
  for (unsigned i = 0; i < MqTables::part; ++i) {
    table[i] = static_cast<std::uint8_t>(context_of({i}));
    table[MqTables::signs + i] = static_cast<std::uint8_t>(sign_context({i}));
  }
  table[MqTables::other] = MqTables::run_length_context;
  for (unsigned i = 1; i < MqTables::bytes - MqTables::other; ++i) {
    table[MqTables::other + i] = MqTables::uniform_context;
  }
  for (unsigned state = 0; state < mq_states; ++state) {
    const bool switches = state == 0 || state == 6 || state == 14;
    for (unsigned likely = 0; likely < 2; ++likely) {
      const std::uint32_t word =
          mq_state_word(intervals[state], likely, after_likely[state], after_unlikely[state], switches);
      std::memcpy(&table[MqTables::states + 4 * (2 * state + likely)], &word, sizeof(word));
    }
  }
  return table;
}

}  // namespace slidestream::cuda
