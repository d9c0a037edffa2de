#include <cuda_runtime.h>

#include "cuda/device/primitives.cuh"
#include "cuda/jpeg/device_batch.hpp"
#include "runtime/cuda/check.hpp"

// Takes the stuffed zeros and the restart markers out of scans, so that the decoders read aligned words without looking
// at them, and says where segments begin. A warp a tile: 32 chunks of 16 bytes a turn, compacted in shared memory.

namespace slidestream::cuda {
namespace {

constexpr std::uint32_t warps_per_block = 8;
constexpr std::uint32_t turn_bytes = 512;

__device__ __forceinline__ std::uint32_t byte_mask(std::uint32_t equal_bytes) {
  return (equal_bytes & 1U) | (equal_bytes >> 7 & 2U) | (equal_bytes >> 14 & 4U) | (equal_bytes >> 21 & 8U);
}

/// Of 16 bytes: those that are 0xFF, and those that are zero.
__device__ __forceinline__ void classify(const std::uint32_t (&words)[4], std::uint32_t& ones, std::uint32_t& zeros) {
  ones = zeros = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    ones |= byte_mask(__vcmpeq4(words[i], 0xFFFFFFFFU)) << (4 * i);
    zeros |= byte_mask(__vcmpeq4(words[i], 0)) << (4 * i);
  }
}

__device__ __forceinline__ uint4 swapped(uint4 v) {
  return make_uint4(__byte_perm(v.x, 0, 0x0123), __byte_perm(v.y, 0, 0x0123), __byte_perm(v.z, 0, 0x0123),
                    __byte_perm(v.w, 0, 0x0123));
}

__device__ __forceinline__ std::uint32_t inclusive_sum(std::uint32_t value, std::uint32_t lane) {
#pragma unroll
  for (std::uint32_t step = 1; step < 32; step <<= 1) {
    const std::uint32_t other = __shfl_up_sync(all_lanes, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

/// The byte at `position` of the turn's 512.
__device__ __forceinline__ std::uint32_t byte_of(const uint4& words, std::uint32_t position) {
  const std::uint32_t index = position / 4 % 4;
  const std::uint32_t word = index == 0 ? words.x : index == 1 ? words.y : index == 2 ? words.z : words.w;
  return __shfl_sync(all_lanes, word, position / 16) >> (8 * (position % 4)) & 255U;
}

/// Segments of a tile that isn't cut into pieces: where each begins was written while its markers were found.
__device__ void complete_segments(const JpegDeviceBatch& batch, const JpegDeviceTile& tile, std::uint32_t id,
                                  std::uint32_t bytes, bool sound, std::uint32_t lane) {
  const std::uint32_t cycles = std::uint32_t{tile.cycles_across} * tile.cycle_rows;
  const std::uint32_t per_segment = tile.cycles_per_interval == 0 ? cycles : tile.cycles_per_interval;
  JpegSegment* segments = batch.segments + tile.first_segment;
  __syncwarp();
  for (std::uint32_t i = lane; i < tile.segments; i += 32) {
    // Those of an unsound tile may be unwritten.
    const std::uint32_t start = i == 0 || !sound ? 0 : segments[i].start_bit;
    const std::uint32_t first = i * per_segment;
    JpegSegment segment{};
    segment.tile = id;
    segment.start_bit = start;
    segment.end_bit = i + 1 == tile.segments || !sound ? 8 * bytes : segments[i + 1].start_bit;
    segment.slack = 8;
    segment.first_cycle = first;
    segment.cycles = sound ? min(per_segment, cycles - first) : 0;
    // Others of this warp read only `start_bit` of it, which stays what it was.
    segments[i] = segment;
  }
}

__global__ void __launch_bounds__(32 * warps_per_block) unstuff(const JpegDeviceBatch batch) {
  __shared__ __align__(16) std::uint8_t staging[warps_per_block][16 + turn_bytes + 32];
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t warp = threadIdx.x / 32;
  const std::uint32_t id = blockIdx.x * warps_per_block + warp;
  if (id >= batch.tile_count) return;
  const JpegDeviceTile tile = batch.tiles[id];
  std::uint8_t* bytes = staging[warp];
  const std::uint32_t lead = static_cast<std::uint32_t>(tile.scan_offset % 16);
  const uint4* from = reinterpret_cast<const uint4*>(batch.compressed + (tile.scan_offset - lead));
  uint4* to = batch.scans + tile.first_chunk;
  const std::uint32_t end = lead + tile.scan_bytes;  // in bytes from `from`
  const std::uint32_t chunks = (end + 15) / 16;
  std::uint32_t fill = 0;     // bytes in the staging memory
  std::uint32_t written = 0;  // chunks
  std::uint32_t restarts = 0;
  std::uint32_t skip = lead;  // bytes at the beginning of a turn that don't belong to the data
  bool after_ones = false;    // the turn before ended with a 0xFF that counts
  bool stopped = false;
  JpegReason reason = JpegReason::none;

  uint4 next = lane < chunks ? __ldcs(from + lane) : make_uint4(0, 0, 0, 0);
  for (std::uint32_t first = 0; first < chunks && !stopped; first += 32) {
    const uint4 current = next;
    next = first + 32 + lane < chunks ? __ldcs(from + first + 32 + lane) : make_uint4(0, 0, 0, 0);
    const std::uint32_t words[4] = {current.x, current.y, current.z, current.w};
    std::uint32_t ones;
    std::uint32_t zeros;
    classify(words, ones, zeros);
    // Bytes of this lane that are data: neither before the scan nor behind its end.
    const std::int32_t left = static_cast<std::int32_t>(end - 16 * first) - static_cast<std::int32_t>(16 * lane);
    std::uint32_t valid = left >= 16 ? 0xFFFFU : left <= 0 ? 0U : (1U << left) - 1U;
    if (skip > 16 * lane) valid &= skip >= 16 * lane + 16 ? 0U : 0xFFFFU << (skip - 16 * lane);
    ones &= valid;
    // A bit for the byte before: it comes from the neighbour.
    std::uint32_t previous = __shfl_up_sync(all_lanes, ones >> 15, 1);
    if (lane == 0) previous = after_ones ? 1 : 0;
    const std::uint32_t follows = (ones << 1 | previous) & 0xFFFFU;  // bytes that follow a 0xFF
    std::uint32_t keep = valid & ~(follows & zeros);
    after_ones = (__shfl_sync(all_lanes, ones, 31) >> 15 & 1U) != 0;

    // A 0xFF begins a marker when a byte other than zero follows; so does one at the end of the data.
    std::uint32_t markers = follows & valid & ~zeros;
    if (__any_sync(all_lanes, markers != 0)) {
      // In order. A marker's code is at the byte found; the 0xFF before it was kept, perhaps in the turn before, where
      // it is the last byte of the staging memory.
      std::uint32_t resume = 0;  // positions below were dealt with
      while (true) {
        const std::uint32_t ahead = markers & (resume >= 16 * lane + 16 ? 0U
                                               : resume <= 16 * lane    ? 0xFFFFU
                                                                        : 0xFFFFU << (resume - 16 * lane));
        const std::uint32_t lanes = __ballot_sync(all_lanes, ahead != 0);
        if (lanes == 0) break;
        const std::uint32_t owner = static_cast<std::uint32_t>(__ffs(static_cast<int>(lanes)) - 1);
        const std::uint32_t position =
            16 * owner + static_cast<std::uint32_t>(
                             __ffs(static_cast<int>(__shfl_sync(all_lanes, ahead, static_cast<int>(owner)))) - 1);
        const std::uint32_t code = byte_of(current, position);
        // Drop the marker's two bytes.
        if (position == 0) {
          --fill;  // above zero: a turn's last bytes are held back, see below
        } else if (lane == (position - 1) / 16) {
          keep &= ~(1U << (position - 1) % 16);
        }
        if (lane == owner) keep &= ~(1U << position % 16);
        // Bytes kept before it: those of lanes below, and those below it of its own.
        const std::uint32_t below = position <= 16 * lane        ? 0U
                                    : position >= 16 * lane + 16 ? 0xFFFFU
                                                                 : (1U << (position - 16 * lane)) - 1U;
        const std::uint32_t kept = __reduce_add_sync(all_lanes, static_cast<unsigned>(__popc(keep & below)));
        const bool restart =
            tile.cycles_per_interval != 0 && code == 0xD0U + restarts % 8 && restarts + 1 < tile.segments;
        if (!restart) {
          if (code != 0xD9U) reason = JpegReason::wrong_marker;
          keep &= below;
          stopped = true;
          after_ones = false;
          break;
        }
        ++restarts;
        if (lane == 0) batch.segments[tile.first_segment + restarts].start_bit = 8 * (16 * written + fill + kept);
        // A byte that follows a restart marker doesn't follow a 0xFF, and the code itself never is one.
        resume = position + 1;
      }
    }

    const std::uint32_t count = static_cast<std::uint32_t>(__popc(keep));
    const std::uint32_t sum = inclusive_sum(count, lane);
    const std::uint32_t total = __shfl_sync(all_lanes, sum, 31);
    std::uint32_t at = fill + sum - count;
#pragma unroll
    for (std::uint32_t i = 0; i < 16; ++i) {
      if ((keep >> i & 1U) != 0) bytes[at++] = static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)));
    }
    __syncwarp();
    // Whole chunks leave, but never all bytes: a 0xFF at the end may turn out to begin a marker.
    const std::uint32_t have = fill + total;
    const std::uint32_t whole = have == 0 ? 0 : (have - 1) / 16;
    const uint4 chunk = lane < whole ? reinterpret_cast<const uint4*>(bytes)[lane] : make_uint4(0, 0, 0, 0);
    if (lane < whole) to[written + lane] = swapped(chunk);
    const std::uint32_t rest = have - 16 * whole;
    const std::uint8_t byte = lane < rest ? bytes[16 * whole + lane] : 0;
    __syncwarp();
    if (lane < rest) bytes[lane] = byte;
    __syncwarp();
    fill = rest;
    written += whole;
    skip = 0;
  }
  if (after_ones) reason = JpegReason::wrong_marker;  // the data end between the bytes of a marker
  if (lane >= fill && lane < 32) bytes[lane] = 0;
  __syncwarp();
  if (lane < (fill + 15) / 16) to[written + lane] = swapped(reinterpret_cast<const uint4*>(bytes)[lane]);
  const std::uint32_t length = 16 * written + fill;
  if (tile.cycles_per_interval != 0 && restarts + 1 != tile.segments) reason = JpegReason::wrong_marker;
  if (lane == 0) {
    batch.lengths[id] = length;
    batch.verdicts[id] = static_cast<std::uint32_t>(reason);
  }
  if (tile.piece_bytes == 0) {
    complete_segments(batch, tile, id, length, reason == JpegReason::none, lane);
  } else {
    for (std::uint32_t i = lane; i < tile.segments; i += 32) {
      JpegSegment segment{};
      segment.tile = id;
      batch.segments[tile.first_segment + i] = segment;
    }
  }
}

__global__ void __launch_bounds__(256) fill_white(const JpegDeviceBatch batch) {
  const JpegDeviceRectangle rectangle = batch.rectangles[blockIdx.x];
  const std::uint32_t lane = threadIdx.x % 32;
  for (std::uint32_t y = threadIdx.x / 32; y < rectangle.height; y += 8) {
    std::uint8_t* row = batch.plane + rectangle.offset + std::uint64_t{y} * rectangle.pitch;
    // Bytes up to the first aligned 16, whole ones, and the rest.
    const std::uint32_t head =
        min(rectangle.width, static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(row) % 16));
    const std::uint32_t body = (rectangle.width - head) / 16;
    const std::uint32_t tail = rectangle.width - head - 16 * body;
    if (lane < head) row[lane] = 255;
    for (std::uint32_t i = lane; i < body; i += 32) {
      reinterpret_cast<uint4*>(row + head)[i] = make_uint4(0xFFFFFFFFU, 0xFFFFFFFFU, 0xFFFFFFFFU, 0xFFFFFFFFU);
    }
    if (lane < tail) row[head + 16 * body + lane] = 255;
  }
}

}  // namespace

void launch_unstuff(const JpegDeviceBatch& batch, cudaStream_t stream) {
  if (batch.tile_count == 0) return;
  unstuff<<<(batch.tile_count + warps_per_block - 1) / warps_per_block, 32 * warps_per_block, 0, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

void launch_white(const JpegDeviceBatch& batch, cudaStream_t stream) {
  if (batch.rectangle_count == 0) return;
  fill_white<<<batch.rectangle_count, 256, 0, stream>>>(batch);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
