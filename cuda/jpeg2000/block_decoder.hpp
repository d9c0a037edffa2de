#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg/word_bits.hpp"
#include "cuda/jpeg2000/mq_tables.hpp"
#include "cuda/jpeg2000/packets.hpp"

/// \file
/// Coefficient bits of a code-block (ISO/IEC 15444-1, annexes C and D): one MQ decision a step, whatever the coding
/// pass, without branches, for one lane of the device or for the host.
///
/// A word holds a coefficient's bit for 8 columns of a stripe of 4 rows, bit 4 * column + row: the order of the scan.
/// So the coefficients that a pass visits are a mask, the next one is its first set bit, and a coefficient's neighbours
/// are a window of the significance mask and its halo. Magnitudes are never put together here: each bit plane's bits
/// are words in memory.
///
/// In memory a block has, in words of a plane each: signs; "pending", which says of an insignificant coefficient that
/// this plane's significance pass visited it, and of a significant one that it wasn't refined yet; and the bit planes
/// that are coded, from the top. Pending and the first plane are zero at the start. Significance and the contexts of
/// the MQ decoder lie in the arena.

namespace slidestream::cuda {

/// A code-block as a lane gets it.
struct alignas(16) BlockJob {
  std::uint32_t stream;     ///< word where its bits begin
  std::uint32_t last_word;  ///< of them, from there; all ones. Behind it are the carries' positions
  std::uint32_t planes;     ///< word where its signs, pending and bit planes begin
  std::uint32_t shape;      ///< width - 1 | height - 1 << 6 | orientation << 12 | passes << 14 | style << 21
};

constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t block_shape(std::uint32_t width, std::uint32_t height,
                                                            std::uint32_t orientation, std::uint32_t passes,
                                                            std::uint32_t style) {
  return (width - 1) | (height - 1) << 6 | orientation << 12 | passes << 14 | style << 21;
}

/// Words of a bit plane, and of all that a block has in memory.
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t plane_words(std::uint32_t width, std::uint32_t height) {
  return (width + 7) / 8 * ((height + 3) / 4);
}
constexpr SLIDESTREAM_HOST_DEVICE std::uint32_t block_words(std::uint32_t width, std::uint32_t height,
                                                            std::uint32_t coded_planes) {
  return plane_words(width, height) * (2 + coded_planes);
}
/// Words before and behind all blocks that a lane may read, whatever they hold.
inline constexpr std::uint32_t plane_margin = 160;

/// Where a lane's words lie in the arena: those of a warp's 32 lanes are interleaved.
struct LaneArena {
  static constexpr std::uint32_t stride = 128;      ///< bytes from a lane's word to its next
  static constexpr std::uint32_t row = 8 * stride;  ///< from a stripe's words to the next
  static constexpr std::uint32_t contexts = 128 * stride;
  static constexpr std::uint32_t warp_bytes = contexts + MqTables::contexts * stride;
};

/// `Arena` has load, load_byte, load_if (0 where the condition is false), store and store_if, all by byte addresses,
/// and fetch_if and keep_if for words of memory. `styled` is for blocks of any style; others are quicker without.
template <class Arena, bool styled>
class BlockDecoder {
 public:
  /// Idle.
  BlockDecoder() = default;

  /// `base` is where the lane's words begin in the arena.
  SLIDESTREAM_HOST_DEVICE void start(const BlockJob& job, const std::uint32_t* stream, const Arena& arena,
                                     std::uint32_t base, std::uint32_t tables) {
    base_ = base;
    next_word_ = job.stream;
    last_word_ = job.stream + job.last_word;
    window_ = stream[next_word_];
    after_ = stream[smaller(next_word_ + 1, last_word_)];
    ahead_ = stream[smaller(next_word_ + 2, last_word_)];
    next_word_ += 3;
    position_ = 31;
    refill_at_ = 32;
    interval_ = 0x80000000U;
    code_ = window_ >> 1;
    next_carry_ = last_word_ + 1;
    carry_at_ = stream[next_carry_];
    carry_ahead_ = stream[++next_carry_];
    add_carry(stream, [](bool condition, std::uint32_t& value, const std::uint32_t* from) {
      if (condition) value = *from;
    });
    const std::uint32_t width = (job.shape & 63U) + 1, height = (job.shape >> 6 & 63U) + 1;
    groups_ = (width + 7) >> 3;
    stripes_ = (height + 3) >> 2;
    words_ = groups_ * stripes_;
    last_group_mask_ = (width & 7U) != 0 ? (1U << 4 * (width & 7U)) - 1 : ~0U;
    const std::uint32_t rows = height & 3U;
    last_stripe_mask_ = rows == 0 ? ~0U : rows == 1 ? 0x11111111U : rows == 2 ? 0x33333333U : 0x77777777U;
    const std::uint32_t orientation = job.shape >> 12 & 3U;
    zero_coding_ = tables + (orientation == 0   ? MqTables::zero_coding
                             : orientation == 1 ? MqTables::zero_coding_hl
                                                : MqTables::zero_coding_hh);
    // As if at the end of a pass before the first: `advance` goes on to the first word of the first plane's clean-up.
    // What it writes on the way is zero, and where zeros are.
    passes_ = (styled ? job.shape >> 14 & 127U : job.shape >> 14) + 1;
    if constexpr (styled) style_ = job.shape >> 21;
    pass_ = refinement;
    signs_at_ = job.planes;
    plane_at_ = job.planes + 2 * words_;
    for (std::uint32_t i = 0; i < stripes_ * 8; ++i) arena.store(base_ + i * LaneArena::stride, 0);
    reset_contexts(arena);
    group_ = groups_ - 1;
    stripe_ = stripes_ - 1;
    number_ = words_ - 1;
    word_at_ = base_ + (stripe_ * 8 + group_) * LaneArena::stride;
    significant_ = significant_before_ = pending_ = visited_ = plane_ = 0;
    next_plane_ = next_pending_ = next_signs_ = signs_right_ = signs_above_ = signs_below_ = 0;
    ones_ = candidates_ = runs_ = first_refined_ = addable_ = 0;
    // Where words follow each other so quickly that what was fetched ahead may be stale.
    small_ = groups_ == 1 || words_ < 3 ? small_fresh : large;
    decision_ = coefficient;
    bit_ = 0;
    above_ = below_ = sig_low_ = sig_high_ = edge_low_ = edge_high_ = 0;
    sign_low_ = sign_high_ = edge_sign_low_ = edge_sign_high_ = 0;
    table_ = zero_coding_;
  }

  /// Whether `step` may be called; else `advance`, or, where it `holds`, `refetch`.
  SLIDESTREAM_HOST_DEVICE bool ready() const { return (candidates_ | decision_) != 0; }
  SLIDESTREAM_HOST_DEVICE bool holds() const { return small_ == small_fresh; }

  /// For small blocks: writes the word that is finished, and fetches again. `advance` comes next.
  SLIDESTREAM_HOST_DEVICE void refetch(const Arena& arena, std::uint32_t* memory) {
    commit(arena, memory);
    prefetch(memory);
    small_ = small_fetched;
  }

  /// Writes the word that is finished, and goes on to the next. False: the block is done. No branches without styles.
  SLIDESTREAM_HOST_DEVICE bool advance(const Arena& arena, std::uint32_t* memory, std::uint32_t tables) {
    if constexpr (styled) {
      const bool ends_plane = pass_ == cleanup && number_ + 1 == words_;
      if (ends_plane && (style_ & BlockStyle::symbols) != 0 && !has_symbols_) {
        has_symbols_ = true;
        decision_ = first_symbol;
        return true;
      }
      has_symbols_ = false;
    }
    commit(arena, memory);
    const std::uint32_t signs_here = funnel_right(sign_high_, sign_low_, 6);
    small_ = small_ != large ? small_fresh : large;
    ++number_;
    ++group_;
    const bool new_stripe = group_ == groups_;
    word_at_ += new_stripe ? (9 - groups_) * LaneArena::stride : LaneArena::stride;
    group_ = new_stripe ? 0 : group_;
    stripe_ += new_stripe ? 1 : 0;
    const bool new_pass = stripe_ == stripes_;
    stripe_ = new_pass ? 0 : stripe_;
    number_ = new_pass ? 0 : number_;
    word_at_ = new_pass ? base_ : word_at_;
    passes_ -= new_pass ? 1 : 0;
    const bool new_plane = new_pass & (pass_ == cleanup);
    plane_at_ += new_plane ? words_ : 0;
    const std::uint32_t next_pass = new_plane ? static_cast<std::uint32_t>(significance) : pass_ + 1;
    pass_ = new_pass ? next_pass : pass_;
    bool sees_below = true;
    if constexpr (styled) {
      if (new_pass && (style_ & BlockStyle::reset) != 0) reset_contexts(arena);
      sees_below = (style_ & BlockStyle::causal) == 0;
    }
    // The words around it.
    const std::uint32_t left = new_stripe ? 0 : significant_, left_above = new_stripe ? 0 : above_,
                        left_below = new_stripe ? 0 : below_;
    const bool has_above = stripe_ > 0, has_below = stripe_ + 1 < stripes_, has_right = group_ + 1 < groups_;
    significant_ = arena.load(word_at_);
    const std::uint32_t right = arena.load_if(has_right, word_at_ + LaneArena::stride);
    const std::uint32_t right_above =
        arena.load_if(has_above & has_right, word_at_ + LaneArena::stride - LaneArena::row);
    const std::uint32_t right_below =
        arena.load_if(has_below & has_right & sees_below, word_at_ + LaneArena::stride + LaneArena::row);
    above_ = arena.load_if(has_above, word_at_ - LaneArena::row);
    below_ = arena.load_if(has_below & sees_below, word_at_ + LaneArena::row);
    plane_ = pass_ == significance ? 0 : next_plane_;
    pending_ = next_pending_;
    const std::uint32_t signs = next_signs_ & significant_;
    sig_low_ = funnel_left(significant_, left, 5);
    sig_high_ = funnel_left(right, significant_, 5);
    edge_low_ = (funnel_left(above_, left_above, 1) & 0x11111111U) | (funnel_left(below_, left_below, 9) & 0x22222222U);
    edge_high_ =
        (funnel_left(right_above, above_, 1) & 0x11111111U) | (funnel_left(right_below, below_, 9) & 0x22222222U);
    sign_low_ = funnel_left(signs, signs_here, 6);
    sign_high_ = funnel_left(signs_right_, signs, 6);
    edge_sign_low_ = (signs_above_ << 2 & 0x22222222U) | (signs_below_ << 10 & 0x44444444U);
    edge_sign_high_ = (signs_above_ >> 30 & 0x22222222U) | (signs_below_ >> 22 & 0x44444444U);
    prefetch(memory);
    choose(left, left_above, left_below, right, right_above, right_below, has_right, has_below, tables);
    take_runs(arena);
    return passes_ != 0;
  }

  /// One decision. No branches.
  SLIDESTREAM_HOST_DEVICE void step(const Arena& arena, const std::uint32_t* stream, std::uint32_t tables) {
    bit_ = decision_ == coefficient ? first_set(candidates_) : bit_;
    const bool begins_run = (decision_ == coefficient) & ((shift_right(runs_, bit_) & 1U) != 0);
    decision_ = begins_run ? static_cast<std::uint32_t>(run) : decision_;
    const std::uint32_t row = bit_ & 3U;
    const bool is_sign = decision_ == sign, is_run = decision_ == run, is_first = decision_ == uniform_high,
               is_second = decision_ == uniform_low, is_coefficient = decision_ == coefficient,
               refines = pass_ == refinement;
    // The neighbourhood: rows above and below the stripe are in masks of their own.
    const std::uint32_t outside = row == 0 ? 0x111U : row == 3 ? 0x444U : 0U;
    const std::uint32_t inner = funnel_right(sig_high_, sig_low_, bit_),
                        outer = funnel_right(edge_high_, edge_low_, bit_);
    const std::uint32_t inner_signs = funnel_right(sign_high_, sign_low_, bit_);
    const std::uint32_t outer_signs = funnel_right(edge_sign_high_, edge_sign_low_, bit_);
    const std::uint32_t around = ((inner & ~outside) | (outer & outside)) & 0x757U;
    const std::uint32_t signs = (inner_signs & ~(2 * outside)) | (outer_signs & 2 * outside);
    const std::uint32_t for_sign = (around & 0x252U) | (signs & 0x4A4U);
    const std::uint32_t for_coefficient = around | (funnel_right(first_refined_, first_refined_, bit_) & 8U);
    std::uint32_t at = is_sign ? tables + MqTables::signs + for_sign : table_ + for_coefficient;
    at = decision_ >= run ? tables + (MqTables::other - run) + decision_ : at;
    const std::uint32_t found = arena.load_byte(at);
    const std::uint32_t context_at = base_ + LaneArena::contexts + (found & 31U) * LaneArena::stride;
    const std::uint32_t state = arena.load(context_at);
    // The MQ decoder: the less likely part lies at the bottom of the interval.
    const std::uint32_t part = state & 0xFFFF0000U, rest = interval_ - part;
    const bool low = code_ < part, exchanged = rest < part, unlikely = low != exchanged;
    code_ = low ? code_ : code_ - part;
    interval_ = low ? part : rest;
    const std::uint32_t decided = (state & 1U) ^ (unlikely ? 1U : 0U);
    const std::uint32_t new_state = arena.load(tables + MqTables::states + ((unlikely ? state >> 7 : state) & 0x1FCU));
    const std::uint32_t shift = leading_zeros(interval_);
    const std::uint32_t next_bits = funnel_left(window_, after_, position_);
    arena.store_if(shift != 0, context_at, new_state);
    interval_ = shift_left(interval_, shift);
    code_ = funnel_left(code_, next_bits, shift);
    position_ += shift;
    add_carry(stream, [&arena](bool condition, std::uint32_t& value, const std::uint32_t* from) {
      arena.fetch_if(condition, value, from);
    });
    const bool refill = position_ >= refill_at_;
    window_ = refill ? after_ : window_;
    after_ = refill ? ahead_ : after_;
    refill_at_ += refill ? 32 : 0;
    arena.fetch_if(refill, ahead_, stream + smaller(next_word_, last_word_));
    next_word_ += refill ? 1 : 0;
    // What it means.
    const std::uint32_t along_run = is_second ? 1 : 0;
    const std::uint32_t at_bit = bit_ + decided * (is_first ? 2 : along_run);
    const bool is_one = decided != 0;
    const bool hit = (is_coefficient & is_one) | is_second;  // the plane's bit is one
    const bool becomes_significant = hit & !refines, done = is_sign | (is_coefficient & !becomes_significant);
    const std::uint32_t keeps_others = done ? ~1U : ~0U;
    const std::uint32_t keeps = (is_run & !is_one) ? ~15U : keeps_others;
    // A coefficient that becomes significant adds those neighbours to a significance pass that come later.
    const std::uint32_t below_it = row == 3 ? 0x18U : 0x3AU;
    const std::uint32_t later = row == 0 ? 0x32U : below_it;
    const std::uint32_t added = shift_left(is_sign ? later : 0, bit_) & ~significant_ & addable_;
    candidates_ = (candidates_ & shift_left(keeps, bit_)) | added;
    visited_ |= added;
    const std::uint32_t sign_bit = shift_left(is_sign ? decided ^ found >> 7 : 0, bit_);
    const std::uint32_t one_bit = shift_left(hit ? 1 : 0, at_bit);
    sign_low_ += sign_bit << 6;
    sign_high_ += sign_bit >> 26;
    significant_ |= one_bit;
    ones_ |= one_bit;
    sig_low_ |= one_bit << 5;
    sig_high_ |= one_bit >> 27;
    runs_ &= ~(one_bit * 0x1EU);
    bit_ = at_bit;
    const std::uint32_t after_uniform =
        is_first ? static_cast<std::uint32_t>(uniform_low) : static_cast<std::uint32_t>(coefficient);
    const std::uint32_t otherwise = (is_run & is_one) ? static_cast<std::uint32_t>(uniform_high) : after_uniform;
    const std::uint32_t next = becomes_significant ? static_cast<std::uint32_t>(sign) : otherwise;
    if constexpr (styled) {
      const std::uint32_t next_symbol = decision_ == last_symbol ? 0 : decision_ + 1;
      decision_ = decision_ >= first_symbol ? next_symbol : next;
    } else {
      decision_ = next;
    }
  }

 private:
  /// What the next decision is of; the order counts.
  enum Decision : std::uint32_t {
    coefficient = 0,
    sign = 1,
    run = 2,
    uniform_high = 3,
    uniform_low = 4,
    first_symbol = 5,
    last_symbol = 8
  };
  enum Pass : std::uint32_t { significance = 0, refinement = 1, cleanup = 2 };
  enum Small : std::uint32_t { large = 0, small_fresh = 1, small_fetched = 2 };

  SLIDESTREAM_HOST_DEVICE void reset_contexts(const Arena& arena) const {
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
    for (std::uint32_t i = 0; i < MqTables::contexts; ++i) {
      arena.store(base_ + LaneArena::contexts + i * LaneArena::stride, first_mq_state(i));
    }
  }

  /// Adds the carry of a byte that the decoder of the standard would have read by now, at the lowest of the 16 bits
  /// that it looks at, and shifted since.
  template <class Fetch>
  SLIDESTREAM_HOST_DEVICE void add_carry(const std::uint32_t* stream, const Fetch& fetch_if) {
    const bool carries = position_ > carry_at_;
    code_ += carries ? shift_left(0x10000U, position_ - carry_at_) : 0;
    carry_at_ = carries ? carry_ahead_ : carry_at_;
    next_carry_ += carries ? 1 : 0;
    fetch_if(carries, carry_ahead_, stream + next_carry_);
  }

  /// The words of the pass that come next: `advance` needs them a word later.
  SLIDESTREAM_HOST_DEVICE void prefetch(const std::uint32_t* memory) {
    const std::uint32_t next = number_ + 1 == words_ ? 0 : number_ + 1;
    const std::uint32_t* at = memory + (signs_at_ + next);
    next_plane_ = memory[plane_at_ + next];
    next_pending_ = at[words_];
    next_signs_ = at[0];
    signs_right_ = at[1];
    signs_above_ = *(at - groups_);
    signs_below_ = at[groups_];
  }

  SLIDESTREAM_HOST_DEVICE void commit(const Arena& arena, std::uint32_t* memory) {
    const std::uint32_t added = significant_ & ~significant_before_, signs = funnel_right(sign_high_, sign_low_, 6);
    const std::uint32_t kept = pass_ == significance ? pending_ & significant_before_ : pending_;
    const std::uint32_t fresh = pass_ == cleanup ? added : visited_;
    const std::uint32_t pending = pass_ == refinement ? pending_ & ~visited_ : kept | fresh;
    arena.store(word_at_, significant_);
    memory[signs_at_ + words_ + number_] = pending;
    memory[plane_at_ + number_] = plane_ | ones_;
    arena.keep_if(added != 0, memory + (signs_at_ + number_), signs);
  }

  /// Which coefficients of the word the pass visits.
  SLIDESTREAM_HOST_DEVICE void choose(std::uint32_t left, std::uint32_t left_above, std::uint32_t left_below,
                                      std::uint32_t right, std::uint32_t right_above, std::uint32_t right_below,
                                      bool has_right, bool has_below, std::uint32_t tables) {
    const auto column = [](std::uint32_t here, std::uint32_t above, std::uint32_t below) {
      return here | (here << 1 & 0xEEEEEEEEU) | (above >> 3 & 0x11111111U) | (here >> 1 & 0x77777777U) |
             (below << 3 & 0x88888888U);
    };
    const std::uint32_t here = column(significant_, above_, below_), before = column(left, left_above, left_below),
                        behind = column(right, right_above, right_below),
                        near = here | funnel_left(here, before, 4) | funnel_right(behind, here, 4);
    const std::uint32_t inside = (has_right ? ~0U : last_group_mask_) & (has_below ? ~0U : last_stripe_mask_);
    const std::uint32_t in_cleanup = ~(significant_ | pending_) & inside;
    const std::uint32_t in_significance = near & ~significant_ & inside, in_refinement = significant_ & ~plane_;
    significant_before_ = significant_;
    ones_ = 0;
    const bool is_significance = pass_ == significance, refines = pass_ == refinement;
    candidates_ = is_significance ? in_significance : refines ? in_refinement : in_cleanup;
    visited_ = candidates_;
    addable_ = is_significance ? inside : 0;
    first_refined_ = refines ? funnel_left(~pending_, ~pending_, 3) : 0;
    table_ = refines ? tables + MqTables::refinement : zero_coding_;
    // Columns of four that are visited whole, with nothing significant near.
    std::uint32_t whole = in_cleanup & ~near;
    whole &= whole >> 1;
    whole &= whole >> 2;
    runs_ = pass_ == cleanup ? whole & 0x11111111U : 0;
  }

  /// Takes the first columns of a clean-up pass at once, all of them or half, where nothing becomes significant in them
  /// and the MQ decoder needn't renormalise on the way.
  SLIDESTREAM_HOST_DEVICE void take_runs(const Arena& arena) {
    const std::uint32_t first = first_set(candidates_);
    const std::uint32_t columns = smaller(first_set(~shift_right(runs_, first) & 0x11111111U) >> 2, 8);
    const std::uint32_t state =
        arena.load(base_ + LaneArena::contexts + MqTables::run_length_context * LaneArena::stride);
    const std::uint32_t part = state >> 16, room = smaller(interval_ - 0x80000000U, code_) >> 16;
    const std::uint32_t half = part * (columns >> 1) <= room ? columns >> 1 : 0;
    const std::uint32_t most = part * columns <= room ? columns : half;
    const std::uint32_t taken = (state & 1U) != 0 ? 0 : most;
    interval_ -= taken * part << 16;
    code_ -= taken * part << 16;
    candidates_ &= shift_left(~0U, first + 4 * taken);
  }

  // The MQ decoder: interval and code with 16 bits of fraction; a window of the stream, the words after it, and places.
  std::uint32_t interval_ = 0, code_ = 0, window_ = 0, after_ = 0, ahead_ = 0, position_ = 0, refill_at_ = 0,
                next_word_ = 0, last_word_ = 0;
  // Where the next carry is added, and the one after it; the word that holds the latter.
  std::uint32_t carry_at_ = 0, carry_ahead_ = 0, next_carry_ = 0;
  // Where the lane is: addresses of its words and of the word; the word's group of columns, stripe and number; how many
  // there are; masks of the last group and stripe.
  std::uint32_t base_ = 0, word_at_ = 0, group_ = 0, stripe_ = 0, groups_ = 0, stripes_ = 0, number_ = 0, words_ = 0,
                last_group_mask_ = 0, last_stripe_mask_ = 0;
  // Passes left, the kind of this one, the orientation's table, where the block's words and the plane's are.
  std::uint32_t passes_ = 0, pass_ = 0, zero_coding_ = 0, signs_at_ = 0, plane_at_ = 0;
  // The word: significance, the same at its start, pending, visited, the plane's bits so far and new ones, what is
  // still to visit, columns that begin runs, refined before (turned by 3), what a significance pass may add, the table.
  std::uint32_t significant_ = 0, significant_before_ = 0, pending_ = 0, visited_ = 0, plane_ = 0, ones_ = 0,
                candidates_ = 0, runs_ = 0, first_refined_ = 0, addable_ = 0, table_ = 0, small_ = 0;
  // Fetched ahead: plane, pending and signs of the next word, and the signs around it.
  std::uint32_t next_plane_ = 0, next_pending_ = 0, next_signs_ = 0, signs_right_ = 0, signs_above_ = 0,
                signs_below_ = 0;
  // Windows with halo, 64 bits each: significance of the stripe, of the rows above and below it, signs of both.
  std::uint32_t sig_low_ = 0, sig_high_ = 0, edge_low_ = 0, edge_high_ = 0, above_ = 0, below_ = 0, sign_low_ = 0,
                sign_high_ = 0, edge_sign_low_ = 0, edge_sign_high_ = 0;
  std::uint32_t bit_ = 0, decision_ = 0;
  // With styles: these, and whether the decisions behind a bit plane were made.
  std::uint32_t style_ = 0;
  bool has_symbols_ = false;
};

}  // namespace slidestream::cuda
