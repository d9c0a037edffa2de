#include <cuda_runtime.h>

#include <algorithm>

#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg/shared_arena.cuh"
#include "runtime/cuda/check.hpp"

// Where codes begin in the middle of a scan. Huffman codes synchronise themselves: a decoder that starts anywhere soon
// decodes what the true one does (Weissenberger and Schmidt, "Massively Parallel Huffman Decoding on GPUs", 2018). Each
// thread decodes a piece from a guess; then pieces are decoded again from the state that the piece before ended in,
// until nothing changes. As the first piece's state is true, all are then, by induction; this can take as many rounds
// as there are pieces, but takes two or three. Then counting blocks says which MCU begins where, and sums of
// differences say the predictions there: pieces become segments that can be decoded on their own.
//
// A block of threads a tile.

namespace slidestream::cuda {
namespace {

constexpr unsigned all_lanes = 0xFFFFFFFFU;
constexpr std::uint32_t most_threads = 256;

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
  const std::uint32_t* words;
  std::uint32_t last_word;
  std::uint32_t cycle;   // address of the blocks' tables
  std::uint32_t blocks;  // after which they repeat; 1 when all are the same
};

/// What a walk over a piece is told of: `begin(position)` where a block begins, `difference(value)` its DC difference.
struct Counter {
  static constexpr bool wants_differences = false;
  std::uint32_t blocks = 0;
  __device__ __forceinline__ void begin(std::uint32_t) { ++blocks; }
  __device__ __forceinline__ void difference(std::int32_t) {}
};

/// Decodes symbols while they begin before `end`.
template <class Listener>
__device__ WalkState walk(const Scan& scan, WalkState state, std::uint32_t end, Listener& listener) {
  const SharedArena arena;
  if (state.position >= end) return state;
  std::uint32_t word = state.position / 32;
  std::uint32_t word0 = __ldg(scan.words + min(word, scan.last_word));
  std::uint32_t word1 = __ldg(scan.words + min(word + 1, scan.last_word));
  std::uint32_t word2 = __ldg(scan.words + min(word + 2, scan.last_word));
  std::uint32_t window = funnel_left(word0, word1, state.position);
  std::uint32_t dc = arena.load(scan.cycle + 16 * state.block);
  std::uint32_t ac = arena.load(scan.cycle + 16 * state.block + 4);
  while (state.position < end) {
    const bool begins = state.index == 0;
    if (begins) listener.begin(state.position);
    std::uint32_t symbol = arena.load((begins ? dc : ac) + (window >> (32 - primary_bits)) * 4);
    symbol = arena.load_if((symbol & 31U) == 0, (window >> 14 & (4 * (secondary_words - 1))) | symbol >> 8, symbol);
    if (Listener::wants_differences && begins) {
      const std::uint32_t bits = window << (symbol & 31U);
      const std::uint32_t sign = 0U - (bits >> 31);
      const std::uint32_t magnitude = shift_right_clamped(~(bits ^ sign), symbol >> 16 & 255U);
      listener.difference(sign != 0 ? static_cast<std::int32_t>(magnitude) : -static_cast<std::int32_t>(magnitude));
    }
    state.position += symbol >> 8 & 255U;
    state.index += symbol >> 24;
    if (state.index >= 64) {
      state.index = 0;
      state.block = state.block + 1 == scan.blocks ? 0 : state.block + 1;
      dc = arena.load(scan.cycle + 16 * state.block);
      ac = arena.load(scan.cycle + 16 * state.block + 4);
    }
    if (state.position / 32 != word) {
      ++word;
      word0 = word1;
      word1 = word2;
      word2 = __ldg(scan.words + min(word + 2, scan.last_word));
    }
    window = funnel_left(word0, word1, state.position);
  }
  return state;
}

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

/// The state that a piece's predecessor ended in. Other threads may write it at the same time: it is one word.
__device__ __forceinline__ unsigned long long load_state(const unsigned long long* state) {
  return *reinterpret_cast<const volatile unsigned long long*>(state);
}

__device__ void decode_piece(const Scan& scan, JpegPiece& piece, unsigned long long entry, std::uint32_t end) {
  Counter counter;
  const WalkState exit = walk(scan, WalkState::unpacked(entry), end, counter);
  piece.entry = entry;
  piece.blocks = counter.blocks;
  *reinterpret_cast<volatile unsigned long long*>(&piece.exit) = exit.packed();
}

/// Until every piece was decoded from the state that the one before ended in.
__device__ void synchronise(const Scan& scan, JpegPiece* pieces, std::uint32_t count, std::uint32_t piece_bits,
                            std::uint32_t bits) {
  for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
    const std::uint32_t begin = min(i * piece_bits, bits);
    decode_piece(scan, pieces[i], WalkState{begin, 0, 0}.packed(), min(begin + piece_bits, bits));
  }
  __syncthreads();
  bool changed = true;
  while (changed) {
    bool mine = false;
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
      if (i == 0) continue;
      const unsigned long long entry = load_state(&pieces[i - 1].exit);
      if (entry == pieces[i].entry) continue;
      decode_piece(scan, pieces[i], entry, min((i + 1) * piece_bits, bits));
      mine = true;
    }
    __threadfence_block();
    changed = __syncthreads_or(mine ? 1 : 0) != 0;
  }
}

/// Makes segments of synchronised pieces. \returns cycles found.
__device__ std::uint32_t make_segments(const Scan& scan, const JpegCoding& coding, const JpegDeviceTile& tile,
                                       JpegPiece* pieces, JpegSegment* segments, std::uint32_t id,
                                       std::uint32_t piece_bits, std::uint32_t bits) {
  const std::uint32_t cycles = std::uint32_t{tile.cycles_across} * tile.cycle_rows;
  std::uint32_t components[2] = {};
  for (std::uint32_t b = 0; b < coding.block_count; ++b) {
    const std::uint32_t component =
        coding.rgb != 0 || coding.blocks[b].component == 0 ? coding.blocks[b].component : 7U;
    components[b / 8] |= component << (4 * (b % 8));
  }
  std::uint32_t blocks_before = 0;
  std::uint32_t found = 0;
  std::int32_t dc_before[3] = {};
  for (std::uint32_t base = 0; base < tile.segments; base += blockDim.x) {
    const std::uint32_t i = base + threadIdx.x;
    const bool there = i < tile.segments;
    std::int32_t total = 0;
    const std::uint32_t first = blocks_before + static_cast<std::uint32_t>(exclusive_sum(
                                                    there ? static_cast<std::int32_t>(pieces[i].blocks) : 0, total));
    blocks_before += static_cast<std::uint32_t>(total);
    Surveyor surveyor{first, tile.blocks_in_cycle, coding.block_count, 0, components[0], components[1]};
    const std::uint32_t first_cycle = (first + tile.blocks_in_cycle - 1) / tile.blocks_in_cycle;
    surveyor.cycles_left = first_cycle < cycles ? cycles - first_cycle : 0;
    surveyor.set_out();
    if (there) {
      WalkState state = WalkState::unpacked(pieces[i].entry);
      // The block that the state is in, from the count: where all blocks have the same codes, the state doesn't know.
      if (scan.blocks != 1) state.block = (state.index == 0 ? first : first - 1) % scan.blocks;
      walk(scan, state, min((i + 1) * piece_bits, bits), surveyor);
    }
    std::int32_t dc[3];
#pragma unroll
    for (std::uint32_t k = 0; k < 3; ++k) {
      dc[k] = dc_before[k] + exclusive_sum(surveyor.all[k], total) + surveyor.before[k];
      dc_before[k] += total;
    }
    exclusive_sum(static_cast<std::int32_t>(surveyor.cycles), total);
    found += static_cast<std::uint32_t>(total);
    if (there) {
      JpegSegment segment{};
      segment.tile = id;
      segment.start_bit = surveyor.first_position;
      segment.first_cycle = first_cycle;
      segment.cycles = surveyor.cycles;
      for (std::uint32_t k = 0; k < 3; ++k) {
        segment.dc[k] = static_cast<std::int32_t>(static_cast<std::uint32_t>(dc[k]) *
                                                  coding.quantisation[coding.rgb != 0 ? k : 0][0]);
      }
      segments[i] = segment;
    }
  }
  return found;
}

__global__ void __launch_bounds__(most_threads) find_pieces(const JpegDeviceBatch batch) {
  extern __shared__ std::uint8_t shared[];
  const SharedArena arena;
  const std::uint32_t cycle = (shared_address(shared) + 255) / 256 * 256;
  const std::uint32_t lookup = cycle + 256;
  std::uint32_t filled = 0xFFFFFFFFU;  // the coding whose tables are there
  for (std::uint32_t id = blockIdx.x; id < batch.tile_count; id += gridDim.x) {
    const JpegDeviceTile& tile = batch.tiles[id];
    if (tile.piece_bytes == 0) continue;
    JpegSegment* const segments = batch.segments + tile.first_segment;
    if (batch.verdicts[id] != 0) continue;  // its segments are empty
    const JpegCoding& coding = batch.codings[tile.coding];
    const bool uniform = (tile.flags & JpegDeviceTile::uniform) != 0;
    __syncthreads();
    if (filled != tile.coding) {
      for (std::uint32_t i = threadIdx.x; i < coding.lookup_words; i += blockDim.x)
        arena.store(lookup + 4 * i, lookup_word(coding, i, lookup));
      if (threadIdx.x < coding.block_count) {
        arena.store(cycle + 16 * threadIdx.x, lookup + 4 * primary_words * coding.blocks[threadIdx.x].dc);
        arena.store(cycle + 16 * threadIdx.x + 4, lookup + 4 * primary_words * coding.blocks[threadIdx.x].ac);
      }
      filled = tile.coding;
    }
    __syncthreads();
    const std::uint32_t bits = 8 * batch.lengths[id];
    const Scan scan{reinterpret_cast<const std::uint32_t*>(batch.scans + tile.first_chunk),
                    max((bits + 127) / 128, 1U) * 4 - 1, cycle, uniform ? 1U : coding.block_count};
    JpegPiece* const pieces = batch.pieces + tile.first_segment;
    const std::uint32_t piece_bits = 8 * tile.piece_bytes;
    synchronise(scan, pieces, tile.segments, piece_bits, bits);
    const std::uint32_t found = make_segments(scan, coding, tile, pieces, segments, id, piece_bits, bits);
    __threadfence_block();
    __syncthreads();
    const bool complete = found == std::uint32_t{tile.cycles_across} * tile.cycle_rows;
    if (!complete && threadIdx.x == 0) batch.verdicts[id] = static_cast<std::uint32_t>(JpegReason::wrong_length);
    for (std::uint32_t i = threadIdx.x; i < tile.segments; i += blockDim.x) {
      if (!complete) {
        segments[i].cycles = 0;
        continue;
      }
      std::uint32_t next = i + 1;
      while (next < tile.segments && segments[next].cycles == 0) ++next;
      segments[i].end_bit = next < tile.segments ? segments[next].start_bit : bits;
      segments[i].slack = next < tile.segments ? 1 : 8;
    }
  }
}

}  // namespace

void launch_find_pieces(const JpegDeviceBatch& batch, const JpegDeviceLimits& limits, std::uint32_t most_pieces,
                        std::uint32_t lookup_words, cudaStream_t stream) {
  const std::uint32_t threads = most_pieces <= 32 ? 32 : most_pieces <= 128 ? 128 : most_threads;
  const std::size_t shared = 512 + 4 * std::size_t{lookup_words};
  SLIDESTREAM_CUDA(
      cudaFuncSetAttribute(find_pieces, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  int resident = 0;
  SLIDESTREAM_CUDA(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, find_pieces, static_cast<int>(threads), shared));
  const std::uint32_t blocks =
      std::min(batch.tile_count, limits.multiprocessors * static_cast<std::uint32_t>(std::max(resident, 1)));
  find_pieces<<<blocks, threads, shared, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
