#include <cuda_runtime.h>

#include <algorithm>
#include <array>

#include "cuda/jpeg/device_batch.hpp"
#include "cuda/jpeg/event_writer.cuh"
#include "cuda/jpeg/shared_arena.cuh"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/shared_memory.hpp"

// From scans without stuffing to luminance in the plane, or to components that convert.cu makes RGB of. Each lane
// decodes a segment, one symbol a step, into two or three blocks of coefficients in shared memory. When some lanes of a
// warp hold the blocks of an event, the warp turns to them: eight lanes transform one lane's blocks, a column each,
// then a row each, and write the pixels. Coefficients never reach device memory, and pixels leave it in whole sectors
// of 32 bytes where they can: the first half waits in `parked`, which stays in the L2 cache.

namespace slidestream::cuda {
namespace {

// Symbols between looks at the other lanes. Four take less than a chunk of 128 bits, so that a look finds one new chunk
// at most, and a chunk asked for arrives `ring_chunks - 1` chunks ahead: six looks at least.
constexpr int steps_per_look = 4;
constexpr int looks_in_flight = 5;

constexpr std::uint32_t lane_bytes(LaneMode mode) {
  return EntropyLane::ring_bytes + lane_block_bytes(mode) + desk_bytes;
}
constexpr std::uint32_t warp_bytes(LaneMode mode, std::uint32_t lanes) {
  return (lanes * lane_bytes(mode) + (blocks_per_event(mode) == 2 ? 2 : 1) * transpose_bytes + 127) / 128 * 128;
}

/// Where a warp's parts lie in shared memory.
struct WarpLayout {
  std::uint32_t rings;
  std::uint32_t blocks;
  std::uint32_t desks;
  std::uint32_t transpose;
};

__device__ __forceinline__ WarpLayout warp_layout(LaneMode mode, std::uint32_t base, std::uint32_t lanes) {
  const std::uint32_t blocks = base + lanes * EntropyLane::ring_bytes;
  const std::uint32_t desks = blocks + lanes * lane_block_bytes(mode);
  return {base, blocks, desks, desks + lanes * desk_bytes};
}

/// Where a lane is in its segment, in events. Where components are kept apart, `x` is the number of the block in the
/// batch, and `across` in the cycle.
struct EventPosition {
  std::uint32_t x;       // units of 8 pixels
  std::uint32_t y;       // of the row of cycles
  std::uint32_t across;  // event of the cycle
  std::uint32_t down;
  std::uint32_t parked;  // four bits for each row of events: first part, and whether there is one
};

/// Constants of a group.
struct GroupShape {
  std::uint32_t events_across;
  std::uint32_t events_down;
  std::uint32_t blocks_in_cycle;
  std::uint64_t components;  // of the cycle's blocks, two bits each; where they are kept apart
};

/// A segment's things that its lane keeps.
struct SegmentState {
  const uint4* chunks;       // of the scan; the first in the ring
  std::uint32_t last_chunk;  // that may be read
  std::uint32_t end;         // position
  std::uint32_t slack;
  std::uint32_t tile;
  std::uint32_t row_end;      // of the frame's cycles, in units of 8 pixels
  std::uint32_t last_full_x;  // where whole events end, in units of 8 pixels; 0: none may wait for others
  std::uint32_t alignment;    // of the origin, in units of 8 pixels
};

/// The word for the event that a lane has complete, and the next position.
template <LaneMode mode>
__device__ __forceinline__ std::uint32_t next_event(EventPosition& at, const SegmentState& segment,
                                                    const GroupShape& shape, std::uint32_t left) {
  if constexpr (keeps_components(mode)) {
    constexpr std::uint32_t blocks = blocks_per_event(mode);
    const auto components = static_cast<std::uint32_t>(shape.components >> (2 * at.across));
    const std::uint32_t place = at.x | components << ComponentWord::shift;
    at.x += blocks;
    at.across += blocks;
    if (at.across == shape.blocks_in_cycle) at.across = 0;
    return place;
  }
  constexpr std::uint32_t width = mode == LaneMode::pairs ? 2 : 1;
  const std::uint32_t part = (segment.alignment + at.x) % 4;
  const std::uint32_t shift = 4 * at.down;
  const std::uint32_t mine = at.parked >> shift & 7U;
  // What waits is fetched by the next event of the row: there must be one, whole, and in this segment.
  const bool goes_on = at.across + 1 < shape.events_across || left >= shape.blocks_in_cycle;
  const bool park =
      part + width < 4 && goes_on && at.x + width < segment.row_end && at.x + 2 * width <= segment.last_full_x;
  std::uint32_t word = at.x | (at.y + at.down) << EventWord::y_shift | at.down << EventWord::slot_shift;
  if (park) word |= EventWord::park_bit;
  if (mine != 0) word |= EventWord::waits_bit | (mine & 3U) << EventWord::first_shift;
  const std::uint32_t now = !park ? 0U : mine != 0 ? mine : part | 4U;
  at.parked ^= (mine ^ now) << shift;
  at.x += width;
  ++at.across;
  if (at.across == shape.events_across) {
    at.across = 0;
    ++at.down;
    if (at.down != shape.events_down) {
      at.x -= width * shape.events_across;
    } else {
      at.down = 0;
      if (at.x == segment.row_end) {
        at.x = 0;
        at.y += shape.events_down;
      }
    }
  }
  return word;
}

/// A lane's new segment: its scan's beginning into the ring, its tile's place onto the desk.
template <LaneMode mode>
__device__ __forceinline__ void take_segment(const JpegDeviceBatch& batch, std::uint32_t number,
                                             const SharedArena& arena, std::uint32_t ring, std::uint32_t blocks,
                                             std::uint32_t desk, const GroupShape& shape, SegmentState& state,
                                             EventPosition& at, std::uint32_t& start, std::uint32_t& block_count) {
  const JpegSegment segment = batch.segments[batch.queue[number]];
  const JpegDeviceTile tile = batch.tiles[segment.tile];
  const std::uint32_t length = batch.lengths[segment.tile];
  const std::uint32_t chunk = segment.start_bit / 128;
  state.chunks = batch.scans + tile.first_chunk + chunk;
  const std::uint32_t chunks = (length + 15) / 16;
  state.last_chunk = chunks > chunk ? chunks - 1 - chunk : 0;
  state.end = segment.end_bit - 128 * chunk + 32;
  state.slack = segment.slack;
  state.tile = segment.tile;
  start = segment.start_bit % 128;
  block_count = segment.cycles * shape.blocks_in_cycle;
  const std::uint32_t cycle_width = shape.events_across * (mode == LaneMode::pairs ? 2 : 1);
  state.row_end = tile.cycles_across * cycle_width;
  at.across = at.down = at.parked = 0;
  at.x = segment.first_cycle % tile.cycles_across * cycle_width;
  at.y = segment.first_cycle / tile.cycles_across * shape.events_down;
  if constexpr (keeps_components(mode)) at.x = tile.first_block + segment.first_cycle * shape.blocks_in_cycle;
  const std::uintptr_t origin =
      reinterpret_cast<std::uintptr_t>(batch.plane) + static_cast<std::uintptr_t>(tile.origin);
  constexpr std::uintptr_t unit = mode == LaneMode::pairs ? 16 : 8;
  const bool aligned = (origin | tile.pitch) % unit == 0 && (tile.flags & JpegDeviceTile::inverted) == 0;
  // Parts of a sector wait where rows begin alike and there is a place for each row of a cycle's events.
  const bool sectors = aligned && tile.pitch % 32 == 0 && tile.first_column == 0 &&
                       shape.events_down * parked_bytes<mode> <= parked_bytes_per_lane;
  state.alignment = static_cast<std::uint32_t>(origin / 8 % 4);
  state.last_full_x = sectors ? tile.columns / 8U : 0U;
  const std::uint32_t flags =
      (aligned ? Desk::aligned : 0) | ((tile.flags & JpegDeviceTile::inverted) != 0 ? Desk::inverted : 0);
  arena.store_vector(
      desk, make_uint4(static_cast<std::uint32_t>(tile.origin),
                       static_cast<std::uint32_t>(static_cast<std::uint64_t>(tile.origin) >> 32), tile.pitch, flags));
  arena.store_vector(desk + 16, make_uint4(tile.first_row | std::uint32_t{tile.rows} << 16,
                                           tile.first_column | std::uint32_t{tile.columns} << 16, segment.tile, 0));
  arena.store_vector(desk + Desk::predictions,
                     make_uint4(static_cast<std::uint32_t>(segment.dc[0]), static_cast<std::uint32_t>(segment.dc[1]),
                                static_cast<std::uint32_t>(segment.dc[2]), 0));
#pragma unroll
  for (std::uint32_t i = 0; i < EntropyLane::ring_chunks; ++i) {
    arena.fetch_if(true, ring + 16 * i, state.chunks + min(i, state.last_chunk));
  }
  for (std::uint32_t i = 0; i < lane_block_bytes(mode); i += 16) arena.store_vector(blocks + i, make_uint4(0, 0, 0, 0));
}

/// Whether the lane's segment ended as it should; else the tile isn't vouched for.
template <LaneMode mode>
__device__ __forceinline__ void conclude(const JpegDeviceBatch& batch, const SharedArena& arena, std::uint32_t blocks,
                                         const SegmentState& segment, std::uint32_t position) {
  JpegReason reason = JpegReason::none;
  if (arena.load(blocks + error_offset(mode)) != 0) reason = JpegReason::bad_code;
  if (segment.end - position >= segment.slack) reason = JpegReason::wrong_length;
  if (reason != JpegReason::none) atomicMax(batch.verdicts + segment.tile, static_cast<std::uint32_t>(reason));
}

template <LaneMode mode>
__device__ __forceinline__ void decode_group(const JpegDeviceBatch& batch, const JpegDeviceGroup& group,
                                             std::uint32_t* counter, std::uint32_t given, std::uint32_t rank,
                                             std::uint32_t ranks, const GroupShape& shape, std::uint32_t cycle,
                                             std::uint32_t warp_base, std::uint32_t lanes, std::uint32_t threshold) {
  const SharedArena arena;
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t warp = threadIdx.x / 32;
  const WarpLayout layout = warp_layout(mode, warp_base, lanes);
  const std::uint32_t safe_lane = lane < lanes ? lane : 0;
  const std::uint32_t ring = layout.rings + safe_lane * EntropyLane::ring_bytes;
  const std::uint32_t blocks = layout.blocks + safe_lane * lane_block_bytes(mode);
  const std::uint32_t desk = layout.desks + safe_lane * desk_bytes;
  std::uint8_t* const parked =
      batch.parked + (std::size_t{blockIdx.x} * (blockDim.x / 32) + warp) * 32 * parked_bytes_per_lane;

  constexpr std::uint32_t idle = 4;  // a state that nothing changes: no segment is left
  constexpr std::uint32_t none_yet = 8 | EntropyLane::finished;
  EntropyLane decoder;
  decoder.state = lane < lanes ? none_yet : idle;
  decoder.zigzag = cycle;  // any address at which reading does no harm
  SegmentState segment{batch.scans, 0, 0, 0, 0, 0, 0, 0};
  EventPosition at{};
  std::uint32_t chunk = 0;
  bool first = ranks != 0;

  while (true) {
    // Lanes without a segment take the next ones.
    const std::uint32_t wanting = __ballot_sync(
        all_lanes, (decoder.state & EntropyLane::finished) != 0 && (decoder.state & EntropyLane::waiting) == 0);
    if (wanting != 0) {
      if ((wanting >> lane & 1U) != 0 && decoder.state == EntropyLane::finished) {
        conclude<mode>(batch, arena, blocks, segment, decoder.position);
      }
      std::uint32_t number = group.begin;
      if (first) {
        number += (warp * ranks + rank) * lanes + lane;
        first = false;
      } else {
        std::uint32_t taken = 0;
        if (lane == 0) taken = atomicAdd(counter, static_cast<unsigned>(__popc(wanting)));
        number += given + __shfl_sync(all_lanes, taken, 0) +
                  static_cast<std::uint32_t>(__popc(wanting & ((1U << lane) - 1U)));
      }
      std::uint32_t start = 0;
      std::uint32_t block_count = 0;
      const bool takes = (wanting >> lane & 1U) != 0 && number < group.end;
      if (takes) {
        take_segment<mode>(batch, number, arena, ring, blocks, desk, shape, segment, at, start, block_count);
        chunk = 0;
      }
      fetches_arrive<0>();
      __syncwarp();
      if (takes) {
        decoder.begin(arena, ring, cycle, start, block_count);
        if (block_count == 0) decoder.state = none_yet;  // nothing to conclude
      } else if ((wanting >> lane & 1U) != 0) {
        decoder.state = idle;
      }
    }
    if (__all_sync(all_lanes, decoder.state == idle)) break;

    std::uint32_t waiting;
    bool anyone_runs;
    do {
#pragma unroll
      for (int i = 0; i < steps_per_look; ++i) decoder.step(arena, ring, blocks);
      const std::uint32_t now = decoder.position / 128;
      // Past the end the last chunk again: no address beyond it, and no branch.
      arena.fetch_if(now != chunk, ring + (now + EntropyLane::ring_chunks - 1) % EntropyLane::ring_chunks * 16,
                     segment.chunks + min(now + EntropyLane::ring_chunks - 1, segment.last_chunk));
      chunk = now;
      fetches_arrive<looks_in_flight>();
      waiting = __ballot_sync(all_lanes, (decoder.state & EntropyLane::waiting) != 0);
      anyone_runs = __any_sync(all_lanes, decoder.state == 0);
    } while (static_cast<std::uint32_t>(__popc(waiting)) < threshold && anyone_runs);

    if (decoder.position > segment.end + 128 && decoder.state < idle) decoder.state |= EntropyLane::finished;
    while (waiting != 0) {
      // Four lanes at a time: the first goes to lanes 0-7 and so on.
      const std::uint32_t rest1 = waiting & (waiting - 1);
      const std::uint32_t rest2 = rest1 & (rest1 - 1);
      const std::uint32_t rest3 = rest2 & (rest2 - 1);
      const std::uint32_t rest4 = rest3 & (rest3 - 1);
      const std::uint32_t served = waiting & ~rest4;
      std::uint32_t mine = lane >= 16 ? (lane >= 24 ? rest3 : rest2) : (lane >= 8 ? rest1 : waiting);
      const bool own = mine != 0;
      if (!own) mine = waiting;
      const std::uint32_t source = static_cast<std::uint32_t>(__ffs(static_cast<int>(mine)) - 1);
      const bool is_served = (served >> lane & 1U) != 0;
      std::uint32_t word = 0;
      if (is_served) {
        word = next_event<mode>(at, segment, shape, decoder.left);
        decoder.state &= ~EntropyLane::waiting;
      }
      word = __shfl_sync(all_lanes, word, static_cast<int>(source));
      const std::uint32_t its_desk = layout.desks + source * desk_bytes;
      std::uint8_t* const its_parked =
          parked + source * parked_bytes_per_lane + (word >> EventWord::slot_shift) * parked_bytes<mode>;
      const std::uint32_t c = lane % 8;
      uint4 waits_here = make_uint4(0, 0, 0, 0);
      if (mode == LaneMode::pairs && (word & EventWord::waits_bit) != 0) {
        waits_here = __ldcg(reinterpret_cast<const uint4*>(its_parked + 16 * c));
      }
      Desk its{};
      if constexpr (keeps_components(mode)) {
        its.rectangle.z = arena.load(its_desk + 24);  // the tile's number alone
      } else {
        its = {arena.load_vector(its_desk), arena.load_vector(its_desk + 16)};
      }
      RowPixels pixels;
      const std::uint32_t range = transform<mode>(arena, layout.blocks + source * lane_block_bytes(mode), its_desk,
                                                  layout.transpose, lane, own, word, pixels);
      if (own) {
        if (range != 0)
          atomicMax(batch.verdicts + its.rectangle.z, static_cast<std::uint32_t>(JpegReason::out_of_range));
        if constexpr (keeps_components(mode)) {
          write_component_row<mode>(batch.components, word, c, pixels);
        } else {
          write_row<mode>(batch.plane, its, word, c, its_parked, pixels, waits_here);
        }
      }
      __syncwarp();
      waiting &= ~served;
      if (static_cast<std::uint32_t>(__popc(waiting)) < threshold && __any_sync(all_lanes, decoder.state == 0)) break;
    }
  }
}

template <LaneMode mode, int most_threads>
__global__ void __launch_bounds__(most_threads, 1)
    decode(const __grid_constant__ JpegDeviceBatch batch, std::uint32_t first_group, std::uint32_t groups,
           std::uint32_t lanes, std::uint32_t threshold) {
  extern __shared__ std::uint8_t shared[];
  const std::uint32_t base = (shared_address(shared) + zigzag_bytes - 1) / zigzag_bytes * zigzag_bytes;
  const SharedArena arena;
  // Blocks begin with different groups, and go round all of them: who is done helps others.
  const std::uint32_t own = static_cast<std::uint32_t>(std::uint64_t{blockIdx.x} * groups / gridDim.x);
  for (std::uint32_t i = 0; i < groups; ++i) {
    const std::uint32_t number = own + i < groups ? own + i : own + i - groups;
    const JpegDeviceGroup group = batch.groups[first_group + number];
    std::uint32_t* const counter = batch.counters + first_group + number;
    // Segments given out at the beginning to the blocks that begin here: evenly, where a counter would give them to
    // whoever comes first.
    const std::uint32_t first_rank =
        static_cast<std::uint32_t>((std::uint64_t{number} * gridDim.x + groups - 1) / groups);
    const std::uint32_t end_rank =
        static_cast<std::uint32_t>((std::uint64_t{number + 1} * gridDim.x + groups - 1) / groups);
    const std::uint32_t ranks = end_rank - first_rank;
    const std::uint32_t given = ranks * (blockDim.x / 32) * lanes;
    if (i != 0) {
      // All threads must agree, and none may still read the tables of the group before.
      const bool more =
          threadIdx.x == 0 && group.begin + given + *reinterpret_cast<volatile std::uint32_t*>(counter) < group.end;
      if (__syncthreads_or(more ? 1 : 0) == 0) continue;
    }
    const JpegCoding& coding = batch.codings[group.coding];
    const ArenaLayout layout = arena_layout(mode, coding.lookup_words, base);
    fill_tables(arena, coding, mode, layout);
    const std::uint32_t mcus = mcus_per_cycle(mode, coding);
    GroupShape shape{mode == LaneMode::pairs ? coding.horizontal * mcus / 2 : coding.horizontal, coding.vertical,
                     coding.block_count * mcus, 0};
    if constexpr (keeps_components(mode)) {
      for (std::uint32_t b = 0; b < shape.blocks_in_cycle; ++b) {
        shape.components |= std::uint64_t{coding.blocks[b % coding.block_count].component} << (2 * b);
      }
    }
    __syncthreads();
    decode_group<mode>(batch, group, counter, given, blockIdx.x - first_rank, i == 0 ? ranks : 0, shape, layout.cycle,
                       layout.lanes + threadIdx.x / 32 * warp_bytes(mode, lanes), lanes, threshold);
  }
}

using Kernel = void (*)(JpegDeviceBatch, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t);

template <int most_threads>
Kernel kernel_for(LaneMode mode) {
  switch (mode) {
    case LaneMode::pairs:
      return decode<LaneMode::pairs, most_threads>;
    case LaneMode::single:
      return decode<LaneMode::single, most_threads>;
    case LaneMode::rgb:
      return decode<LaneMode::rgb, most_threads>;
    case LaneMode::component_pairs:
      return decode<LaneMode::component_pairs, most_threads>;
    default:
      return decode<LaneMode::component_blocks, most_threads>;
  }
}

std::size_t table_bytes(LaneMode mode, std::uint32_t lookup_words) {
  return zigzag_bytes + arena_layout(mode, lookup_words, 0).lanes;  // with what alignment may take
}

/// Lanes of a multiprocessor, by how many segments there are for each. Measured on an H100.
struct Tuning {
  std::uint32_t segments;  // of a multiprocessor, at least
  std::uint32_t warps;
  std::uint32_t lanes;
  std::uint32_t threshold;
};
using Tunings = std::array<Tuning, 4>;
constexpr Tunings whole_tiles = {{{200, 12, 24, 4}, {64, 8, 16, 4}, {20, 8, 8, 2}, {0, 4, 2, 1}}};
constexpr Tunings whole_rgb_tiles = {{{200, 16, 16, 4}, {64, 8, 16, 4}, {20, 8, 8, 2}, {0, 4, 2, 1}}};
// Pieces differ much in how many blocks they hold: fewer lanes to a warp wait less for each other.
constexpr Tunings pieces = {{{600, 12, 16, 4}, {64, 16, 8, 3}, {20, 8, 8, 2}, {0, 4, 2, 1}}};

}  // namespace

JpegLaneShape shape_for(const JpegDeviceLimits& limits, LaneMode mode, const JpegBatch::Mode& work, bool cut) {
  const std::uint32_t segments = work.segments / limits.multiprocessors;
  const Tunings& tunings = cut ? pieces : mode == LaneMode::rgb ? whole_rgb_tiles : whole_tiles;
  const Tuning& tuning =
      *std::find_if(tunings.begin(), tunings.end(), [segments](const Tuning& t) { return segments >= t.segments; });
  const std::size_t room = limits.shared_bytes - table_bytes(mode, work.lookup_words);
  const auto warps =
      static_cast<std::uint32_t>(std::min<std::size_t>(tuning.warps, room / warp_bytes(mode, tuning.lanes)));
  return {limits.multiprocessors, std::max(warps, 1U), tuning.lanes, tuning.threshold};
}

void launch_decode(const JpegDeviceBatch& batch, LaneMode mode, const JpegBatch::Mode& work, const JpegLaneShape& shape,
                   cudaStream_t stream) {
  if (work.segments == 0) return;
  const std::size_t shared = table_bytes(mode, work.lookup_words) + shape.warps * warp_bytes(mode, shape.lanes);
  const Kernel kernel = shape.warps <= 12 ? kernel_for<384>(mode) : kernel_for<512>(mode);
  runtime::cuda::allow_shared_memory(kernel, shared);
  kernel<<<shape.blocks, 32 * shape.warps, shared, stream>>>(batch, work.first_group, work.groups, shape.lanes,
                                                             shape.threshold);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
