#include <cuda_runtime.h>

#include <algorithm>

#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg/shared_arena.cuh"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/shared_memory.hpp"

// Where codes begin in the middle of a scan. Huffman codes synchronise themselves: a decoder that starts anywhere soon
// decodes what the true one does (Weissenberger and Schmidt, "Massively Parallel Huffman Decoding on GPUs", 2018). Each
// thread decodes a piece from a guess; then pieces are decoded again from the state that the piece before ended in,
// until nothing changes. As the first piece's state is true, all are then, by induction; this can take as many rounds
// as a tile has pieces, but nearly always takes one or two. A piece that is decoded again stops where it meets what it
// did before, which it looks for at one place, its checkpoint. Then counting blocks says which MCU begins where, and
// sums of differences say the predictions there: pieces become segments that can be decoded on their own.
//
// `guess`, `correct` and `survey` have a thread a piece, all pieces of a coding side by side; `settle` and `join` have
// a block of threads a tile.

namespace slidestream::cuda {
namespace {

constexpr std::uint32_t most_threads = 256;
// As in the decoder of luminance: symbols between looks for new chunks, and looks that a chunk may take to arrive.
constexpr int steps_per_look = 4;
constexpr int looks_in_flight = 5;
constexpr std::uint32_t flat_threads = 128;
constexpr std::uint32_t blocks_per_multiprocessor = 8;
// The checkpoint lies after a quarter of a piece, or so many bits: synchronising takes some hundred, seldom thousands.
constexpr std::uint32_t most_checkpoint_bits = 8192;
// Rounds that correct all pieces side by side; what they leave, `settle` finds tile by tile.
constexpr int corrections = 2;

/// The state between two symbols, in one word: bit of the scan, block of the MCU, zigzag index (0: at a block's DC).
struct WalkState {
  std::uint32_t position;
  std::uint32_t block;
  std::uint32_t index;

  __device__ __forceinline__ unsigned long long packed() const {
    return static_cast<unsigned long long>(position) << 32 | block << 8 | index;
  }
  __device__ static __forceinline__ WalkState unpacked(unsigned long long word) {
    return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word >> 8) & 255U,
            static_cast<std::uint32_t>(word) & 255U};
  }
};

/// A tile's scan and tables.
struct Scan {
  const uint4* chunks;
  std::uint32_t last_chunk;
  std::uint32_t cycle;   // address of the blocks' tables
  std::uint32_t blocks;  // after which they repeat; 1 when all are the same
};

/// What a walk over a piece is told: `begin(position)` where a block begins, `difference(value)` its DC difference.
struct Counter {
  static constexpr bool wants_differences = false;
  std::uint32_t blocks = 0;
  __device__ __forceinline__ void begin(std::uint32_t) { ++blocks; }
  __device__ __forceinline__ void difference(std::int32_t) {}
};

/// A thread that goes through a piece. Words come through a ring in shared memory, as in the decoder of luminance: a
/// load into a register would make the whole warp wait for memory whenever one of its threads needs a word.
class Walker {
 public:
  __device__ Walker(const Scan& scan, std::uint32_t ring, const WalkState& state)
      : scan_(scan), ring_(ring), state_(state) {
    const std::uint32_t first = state.position / 128;
    chunks_ = scan.chunks + min(first, scan.last_chunk);
    last_chunk_ = scan.last_chunk - min(first, scan.last_chunk);
    origin_ = 128 * first;
    for (std::uint32_t i = 0; i < EntropyLane::ring_chunks; ++i)
      arena_.fetch_if(true, ring + 16 * i, chunks_ + min(i, last_chunk_));
    fetches_arrive<0>();
    position_ = state.position - origin_ + 32;
    refill_ = (position_ & ~31U) + 32;
    const std::uint32_t word = ring + 4 * (state.position % 128 / 32);
    word0_ = arena_.load(word);
    word1_ = arena_.load(word + 4);
    word2_ = arena_.load(word + 8);
    dc_ = arena_.load(scan.cycle + 16 * state.block);
    ac_ = arena_.load(scan.cycle + 16 * state.block + 4);
  }

  /// Decodes symbols while they begin before bit `end`.
  template <class Listener>
  __device__ void run(std::uint32_t end, Listener& listener) {
    if (end <= origin_) return;
    const std::uint32_t last = end - origin_ + 32;
    while (position_ < last) {
#pragma unroll
      for (int i = 0; i < steps_per_look; ++i) step(last, listener);
      const std::uint32_t now = position_ / 128;
      arena_.fetch_if(now != chunk_, ring_ + (now + EntropyLane::ring_chunks - 1) % EntropyLane::ring_chunks * 16,
                      chunks_ + min(now + EntropyLane::ring_chunks - 1, last_chunk_));
      chunk_ = now;
      fetches_arrive<looks_in_flight>();
    }
  }

  __device__ WalkState state() const { return {position_ - 32 + origin_, state_.block, state_.index}; }

 private:
  template <class Listener>
  __device__ __forceinline__ void step(std::uint32_t last, Listener& listener) {
    const bool running = position_ < last;
    const bool begins = running && state_.index == 0;
    const std::uint32_t window = funnel_left(word0_, word1_, position_);
    std::uint32_t symbol = arena_.load(lookup_address(state_.index == 0 ? dc_ : ac_, window));
    symbol = arena_.load_if((symbol & 31U) == 0, (window >> 14 & (4 * (secondary_words - 1))) | symbol >> 8, symbol);
    if (begins) listener.begin(position_ - 32 + origin_);
    if (Listener::wants_differences && begins) {
      const std::uint32_t bits = window << (symbol & 31U);
      const std::uint32_t sign = 0U - (bits >> 31);
      const std::uint32_t magnitude = magnitude_of(bits, sign, symbol);
      listener.difference(sign != 0 ? static_cast<std::int32_t>(magnitude) : -static_cast<std::int32_t>(magnitude));
    }
    symbol = running ? symbol : idle_entry;
    position_ = add_byte<1, 1>(position_, symbol);
    state_.index = add_byte<3, 1>(state_.index, symbol);
    const bool moved = position_ >= refill_;
    word0_ = moved ? word1_ : word0_;
    word1_ = moved ? word2_ : word1_;
    refill_ = moved ? refill_ + 32 : refill_;
    word2_ = arena_.load_if(moved, ring_ | (refill_ >> 3 & (EntropyLane::ring_bytes - 4)), word2_);
    const bool ended = state_.index >= 64;
    state_.index = ended ? 0 : state_.index;
    const std::uint32_t next = state_.block + 1 == scan_.blocks ? 0 : state_.block + 1;
    state_.block = ended ? next : state_.block;
    dc_ = arena_.load_if(ended, scan_.cycle + 16 * next, dc_);
    ac_ = arena_.load_if(ended, scan_.cycle + 16 * next + 4, ac_);
  }

  SharedArena arena_;
  const Scan& scan_;
  std::uint32_t ring_;
  WalkState state_;  // but for the position
  const uint4* chunks_;
  std::uint32_t last_chunk_;
  std::uint32_t origin_;    // bit of the scan that the ring's first chunk began with
  std::uint32_t position_;  // as EntropyLane's
  std::uint32_t refill_;
  std::uint32_t word0_;
  std::uint32_t word1_;
  std::uint32_t word2_;
  std::uint32_t dc_;
  std::uint32_t ac_;
  std::uint32_t chunk_ = 0;
};

/// Sum over the threads before this one; `total` over all. Called by all threads of a block.
__device__ std::int32_t exclusive_sum(std::int32_t value, std::int32_t& total) {
  __shared__ std::int32_t warp_sums[most_threads / 32];
  const std::uint32_t lane = threadIdx.x % 32;
  std::int32_t sum = value;
#pragma unroll
  for (std::uint32_t step = 1; step < 32; step <<= 1) {
    const std::int32_t other = __shfl_up_sync(all_lanes, sum, step);
    if (lane >= step) sum += other;
  }
  __syncthreads();
  if (lane == 31) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  std::int32_t before = 0;
  total = 0;
  for (std::uint32_t w = 0; w < blockDim.x / 32; ++w) {
    if (w < threadIdx.x / 32) before += warp_sums[w];
    total += warp_sums[w];
  }
  return before + sum - value;
}

/// Looks for the cycles that begin in a piece, with the DC differences before the first of them and in all.
struct Surveyor {
  static constexpr bool wants_differences = true;
  std::uint32_t block;  // of the tile, the next to begin
  std::uint32_t blocks_in_cycle;
  std::uint32_t block_count;  // of an MCU
  std::uint32_t cycles_left;  // of the tile, from the first that could begin here
  std::uint32_t components;   // of each block of an MCU, three bits: 7 when it isn't wanted
  std::uint32_t more_components;
  std::uint32_t first_position = 0;
  std::uint32_t cycles = 0;
  std::uint32_t in_cycle = 0;
  std::uint32_t in_mcu = 0;
  std::int32_t before[3] = {};
  std::int32_t all[3] = {};

  __device__ __forceinline__ void set_out() {
    in_cycle = block % blocks_in_cycle;
    in_mcu = block % block_count;
  }
  __device__ __forceinline__ void begin(std::uint32_t position) {
    if (in_cycle == 0 && cycles < cycles_left) {
      if (cycles == 0) first_position = position;
      ++cycles;
    }
  }
  __device__ __forceinline__ void difference(std::int32_t value) {
    const std::uint32_t component =
        (in_mcu < 8 ? components >> (4 * in_mcu) : more_components >> (4 * (in_mcu - 8))) & 15U;
#pragma unroll
    for (std::uint32_t i = 0; i < 3; ++i) {
      if (component == i) {
        all[i] += value;
        if (cycles == 0) before[i] += value;
      }
    }
    in_cycle = in_cycle + 1 == blocks_in_cycle ? 0 : in_cycle + 1;
    in_mcu = in_mcu + 1 == block_count ? 0 : in_mcu + 1;
  }
};

/// The state that a piece ended in. Another thread may write it at the same time: it is one word.
__device__ __forceinline__ unsigned long long exit_of(const JpegPiece& piece) {
  return *reinterpret_cast<const volatile unsigned long long*>(&piece.exit);
}

struct PieceBits {
  std::uint32_t begin;
  std::uint32_t checkpoint;
  std::uint32_t end;
};

__device__ __forceinline__ PieceBits bits_of(const JpegDeviceTile& tile, std::uint32_t i, std::uint32_t bits) {
  const std::uint32_t piece_bits = 8 * tile.piece_bytes;
  const std::uint32_t begin = min(i * piece_bits, bits);
  return {begin, min(begin + min(piece_bits / 4, most_checkpoint_bits), bits), min(begin + piece_bits, bits)};
}

/// Decodes a piece, from the checkpoint on only if it comes there as it did before.
__device__ void decode_piece(const Scan& scan, std::uint32_t ring, JpegPiece& piece, unsigned long long entry,
                             const PieceBits& bits, bool again) {
  Counter counter;
  Walker walker(scan, ring, WalkState::unpacked(entry));
  walker.run(bits.checkpoint, counter);
  const unsigned long long checkpoint = walker.state().packed();
  const std::uint32_t before = counter.blocks;
  piece.entry = entry;
  if (again && checkpoint == piece.checkpoint) {
    piece.blocks += before - piece.blocks_before;
    piece.blocks_before = before;
    return;
  }
  walker.run(bits.end, counter);
  piece.checkpoint = checkpoint;
  piece.blocks_before = before;
  piece.blocks = counter.blocks;
  *reinterpret_cast<volatile unsigned long long*>(&piece.exit) = walker.state().packed();
}

/// Shared memory of a block of threads: a ring for each thread, and tables of a coding, filled by all of them.
struct WalkTables {
  std::uint32_t ring;  // this thread's
  std::uint32_t cycle;
  std::uint32_t lookup;

  __device__ static __forceinline__ WalkTables in(const void* shared) {
    const std::uint32_t base = (shared_address(shared) + 255) / 256 * 256;
    const std::uint32_t cycle = base + blockDim.x * EntropyLane::ring_bytes;
    return {base + threadIdx.x * EntropyLane::ring_bytes, cycle, cycle + 256};
  }
  __device__ void fill(const JpegCoding& coding) const {
    const SharedArena arena;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < coding.lookup_words; i += blockDim.x) {
      arena.store(lookup + 4 * i, lookup_word(coding, i, lookup));
    }
    if (threadIdx.x < coding.block_count) {
      const JpegCoding::Block block = coding.blocks[threadIdx.x];
      arena.store(cycle + 16 * threadIdx.x, lookup + 4 * primary_words * block.dc);
      arena.store(cycle + 16 * threadIdx.x + 4, lookup + 4 * primary_words * block.ac);
    }
    __syncthreads();
  }
};

__device__ __forceinline__ Scan scan_of(const JpegDeviceBatch& batch, const JpegDeviceTile& tile,
                                        const WalkTables& tables, std::uint32_t bits, std::uint32_t block_count) {
  return {batch.scans + tile.first_chunk, max((bits + 127) / 128, 1U) - 1, tables.cycle,
          (tile.flags & JpegDeviceTile::uniform) != 0 ? 1U : block_count};
}

/// Components of an MCU's blocks, for `Surveyor`.
__device__ void pack_components(const JpegCoding& coding, std::uint32_t (&components)[2]) {
  components[0] = components[1] = 0;
  for (std::uint32_t b = 0; b < coding.block_count; ++b) {
    const bool wanted = coding.mixes_components != 0 || coding.makes_rgb != 0 || coding.blocks[b].component == 0;
    components[b / 8] |= (wanted ? coding.blocks[b].component : 7U) << (4 * (b % 8));
  }
}

__device__ void survey_piece(const JpegDeviceTile& tile, const JpegCoding& coding, const Scan& scan, std::uint32_t ring,
                             JpegPiece& piece, const PieceBits& bits) {
  const std::uint32_t cycles = std::uint32_t{tile.cycles_across} * tile.cycle_rows;
  std::uint32_t components[2];
  pack_components(coding, components);
  Surveyor surveyor{piece.first_block, tile.blocks_in_cycle, coding.block_count, 0, components[0], components[1]};
  const std::uint32_t first_cycle = (piece.first_block + tile.blocks_in_cycle - 1) / tile.blocks_in_cycle;
  surveyor.cycles_left = first_cycle < cycles ? cycles - first_cycle : 0;
  surveyor.set_out();
  Walker walker(scan, ring, WalkState::unpacked(piece.entry));
  walker.run(bits.end, surveyor);
  piece.first_position = surveyor.first_position;
  piece.first_cycle = first_cycle;
  piece.cycles = surveyor.cycles;
  for (std::uint32_t k = 0; k < 3; ++k) {
    piece.before[k] = surveyor.before[k];
    piece.all[k] = surveyor.all[k];
  }
}

enum class Pass { guess, correct, survey };

template <Pass pass>
__global__ void __launch_bounds__(flat_threads) visit_pieces(const JpegDeviceBatch batch) {
  extern __shared__ std::uint8_t shared[];
  const WalkTables tables = WalkTables::in(shared);
  for (std::uint32_t g = 0; g < batch.group_count; ++g) {
    const JpegDeviceGroup group = batch.groups[g];
    const JpegCoding& coding = batch.codings[group.coding];
    const std::uint32_t parts = (group.end - group.begin + flat_threads - 1) / flat_threads;
    bool filled = false;
    // Each group's first part falls to another block.
    for (std::uint32_t part = (blockIdx.x + g) % gridDim.x; part < parts; part += gridDim.x) {
      const std::uint32_t at = group.begin + part * flat_threads + threadIdx.x;
      std::uint32_t number = 0;
      std::uint32_t id = 0;
      bool mine = false;
      unsigned long long entry = 0;
      if (at < group.end) {
        number = batch.queue[at];
        id = batch.segments[number].tile;
        mine = batch.tiles[id].piece_bytes != 0 && batch.verdicts[id] == 0;
      }
      const std::uint32_t i = mine ? number - batch.tiles[id].first_segment : 0;
      if (mine && pass == Pass::correct) {
        entry = i == 0 ? 0 : exit_of(batch.pieces[number - 1]);
        mine = i != 0 && entry != batch.pieces[number].entry;
      }
      if (__syncthreads_or(mine ? 1 : 0) == 0) continue;
      if (!filled) tables.fill(coding);
      filled = true;
      if (!mine) continue;
      const JpegDeviceTile& tile = batch.tiles[id];
      const std::uint32_t bits = 8 * batch.lengths[id];
      const PieceBits piece_bits = bits_of(tile, i, bits);
      const Scan scan = scan_of(batch, tile, tables, bits, coding.block_count);
      if constexpr (pass == Pass::survey) {
        survey_piece(tile, coding, scan, tables.ring, batch.pieces[number], piece_bits);
      } else {
        if (pass == Pass::guess) entry = WalkState{piece_bits.begin, 0, 0}.packed();
        decode_piece(scan, tables.ring, batch.pieces[number], entry, piece_bits, pass == Pass::correct);
      }
    }
  }
}

/// Corrects what is left to correct, and counts blocks.
__global__ void __launch_bounds__(most_threads) settle(const JpegDeviceBatch batch) {
  extern __shared__ std::uint8_t shared[];
  const WalkTables tables = WalkTables::in(shared);
  std::uint32_t filled = 0xFFFFFFFFU;
  for (std::uint32_t id = blockIdx.x; id < batch.tile_count; id += gridDim.x) {
    const JpegDeviceTile& tile = batch.tiles[id];
    if (tile.piece_bytes == 0 || batch.verdicts[id] != 0) continue;
    JpegPiece* const pieces = batch.pieces + tile.first_segment;
    const JpegCoding& coding = batch.codings[tile.coding];
    const std::uint32_t bits = 8 * batch.lengths[id];
    const Scan scan = scan_of(batch, tile, tables, bits, coding.block_count);
    while (true) {
      bool wrong = false;
      for (std::uint32_t i = 1 + threadIdx.x; i < tile.segments; i += blockDim.x)
        wrong |= exit_of(pieces[i - 1]) != pieces[i].entry;
      if (__syncthreads_or(wrong ? 1 : 0) == 0) break;
      if (filled != tile.coding) tables.fill(coding);
      filled = tile.coding;
      for (std::uint32_t i = 1 + threadIdx.x; i < tile.segments; i += blockDim.x) {
        const unsigned long long entry = exit_of(pieces[i - 1]);
        if (entry != pieces[i].entry) decode_piece(scan, tables.ring, pieces[i], entry, bits_of(tile, i, bits), true);
      }
      __threadfence_block();
      __syncthreads();
    }
    std::uint32_t blocks = 0;
    for (std::uint32_t base = 0; base < tile.segments; base += blockDim.x) {
      const std::uint32_t i = base + threadIdx.x;
      std::int32_t total = 0;
      const std::int32_t before =
          exclusive_sum(i < tile.segments ? static_cast<std::int32_t>(pieces[i].blocks) : 0, total);
      if (i < tile.segments) pieces[i].first_block = blocks + static_cast<std::uint32_t>(before);
      blocks += static_cast<std::uint32_t>(total);
    }
  }
}

/// Makes segments of what is known of pieces.
__global__ void __launch_bounds__(most_threads) join(const JpegDeviceBatch batch) {
  for (std::uint32_t id = blockIdx.x; id < batch.tile_count; id += gridDim.x) {
    const JpegDeviceTile& tile = batch.tiles[id];
    if (tile.piece_bytes == 0 || batch.verdicts[id] != 0) continue;
    const JpegPiece* const pieces = batch.pieces + tile.first_segment;
    JpegSegment* const segments = batch.segments + tile.first_segment;
    const JpegCoding& coding = batch.codings[tile.coding];
    std::uint32_t found = 0;
    std::int32_t dc_before[3] = {};
    for (std::uint32_t base = 0; base < tile.segments; base += blockDim.x) {
      const std::uint32_t i = base + threadIdx.x;
      const bool there = i < tile.segments;
      const JpegPiece piece = there ? pieces[i] : JpegPiece{};
      std::int32_t total = 0;
      std::int32_t dc[3];
      for (std::uint32_t k = 0; k < 3; ++k) {
        dc[k] = dc_before[k] + exclusive_sum(piece.all[k], total) + piece.before[k];
        dc_before[k] += total;
      }
      exclusive_sum(static_cast<std::int32_t>(piece.cycles), total);
      found += static_cast<std::uint32_t>(total);
      if (!there) continue;
      JpegSegment segment{};
      segment.tile = id;
      segment.start_bit = piece.first_position;
      segment.first_cycle = piece.first_cycle;
      segment.cycles = piece.cycles;
      const bool all_components = coding.mixes_components != 0 || coding.makes_rgb != 0;
      for (std::uint32_t k = 0; k < 3; ++k) {
        segment.dc[k] = static_cast<std::int32_t>(static_cast<std::uint32_t>(dc[k]) *
                                                  coding.quantisation[all_components ? k : 0][0]);
      }
      // It ends where the next one begins, which may be some pieces later.
      std::uint32_t next = i + 1;
      while (next < tile.segments && pieces[next].cycles == 0) ++next;
      const bool last = next >= tile.segments;
      segment.end_bit = last ? 8 * batch.lengths[id] : pieces[next].first_position;
      segment.slack = last ? 8 : 1;
      segments[i] = segment;
    }
    if (found == std::uint32_t{tile.cycles_across} * tile.cycle_rows) continue;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < tile.segments; i += blockDim.x) segments[i].cycles = 0;
    if (threadIdx.x == 0) batch.verdicts[id] = static_cast<std::uint32_t>(JpegReason::wrong_length);
  }
}

}  // namespace

void launch_find_pieces(const JpegDeviceBatch& batch, const JpegDeviceLimits& limits, std::uint32_t most_pieces,
                        std::uint32_t lookup_words, cudaStream_t stream) {
  const auto launch = [&](auto kernel, std::uint32_t parts, std::uint32_t threads) {
    const std::size_t shared = 512 + 4 * std::size_t{lookup_words} + threads * EntropyLane::ring_bytes;
    runtime::cuda::allow_shared_memory(kernel, shared);
    kernel<<<std::min(parts, limits.multiprocessors * blocks_per_multiprocessor), threads, shared, stream>>>(batch);
    SLIDESTREAM_CUDA_LAUNCHED();
  };
  const std::uint32_t parts = batch.segment_count / flat_threads + batch.group_count;
  const std::uint32_t tile_threads = most_pieces <= 32 ? 32 : most_pieces <= 128 ? 128 : most_threads;
  launch(visit_pieces<Pass::guess>, parts, flat_threads);
  for (int i = 0; i < corrections; ++i) launch(visit_pieces<Pass::correct>, parts, flat_threads);
  launch(settle, batch.tile_count, tile_threads);
  launch(visit_pieces<Pass::survey>, parts, flat_threads);
  launch(join, batch.tile_count, tile_threads);
}

}  // namespace slidestream::cuda
