#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/device/primitives.cuh"
#include "cuda/jpeg/entropy.hpp"

/// \file
/// Shared memory as the entropy decoder's arena. Addresses are 32 bits; accesses under a condition are predicated
/// instructions, where a compiler would make branches of them.

namespace slidestream::cuda {

struct SharedArena {
  __device__ __forceinline__ std::uint32_t load(std::uint32_t address) const {
    std::uint32_t value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address));
    return value;
  }
  __device__ __forceinline__ std::uint32_t load_if(bool condition, std::uint32_t address,
                                                   std::uint32_t otherwise) const {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.shared.u32 %0, [%1]; }"
                 : "+r"(otherwise)
                 : "r"(address), "r"(static_cast<std::uint32_t>(condition)));
    return otherwise;
  }
  __device__ __forceinline__ ZigzagEntry load_zigzag(std::uint32_t address) const {
    ZigzagEntry entry;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(entry.offset), "=r"(entry.negated_quantiser) : "r"(address));
    return entry;
  }
  __device__ __forceinline__ void load_cycle_if(bool condition, std::uint32_t address, CycleEntry& entry) const {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %5, 0; @p ld.shared.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(entry.dc), "+r"(entry.ac), "+r"(entry.zigzag), "+r"(entry.then)
                 : "r"(address), "r"(static_cast<std::uint32_t>(condition)));
  }
  /// Stores the lower 16 bits of a value.
  __device__ __forceinline__ void store_half_if(bool condition, std::uint32_t address, std::uint32_t value) const {
    asm volatile(
        "{ .reg .pred p; .reg .u16 h; setp.ne.u32 p, %2, 0; cvt.u16.u32 h, %1; @p st.shared.u16 [%0], h; }" ::"r"(
            address),
        "r"(value), "r"(static_cast<std::uint32_t>(condition))
        : "memory");
  }

  __device__ __forceinline__ uint4 load_vector(std::uint32_t address) const {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(address));
    return v;
  }
  __device__ __forceinline__ void store(std::uint32_t address, std::uint32_t value) const {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
  }
  __device__ __forceinline__ void store_vector(std::uint32_t address, uint4 v) const {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
  }
  /// 16 bytes from global memory, on their way when this returns.
  __device__ __forceinline__ void fetch_if(bool condition, std::uint32_t address, const void* from) const {
    asm volatile(
        "{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.cg.shared.global.L2::128B [%0], [%1], 16; }" ::"r"(address),
        "l"(from), "r"(static_cast<std::uint32_t>(condition))
        : "memory");
  }
};

/// Closes a group of fetches, and waits until all but the last `pending` groups have arrived.
template <int pending>
__device__ __forceinline__ void fetches_arrive() {
  asm volatile("cp.async.commit_group; cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Fills an arena's tables, by all threads of a block.
__device__ __forceinline__ void fill_tables(const SharedArena& arena, const JpegCoding& coding, LaneMode mode,
                                            const ArenaLayout& layout) {
  for (std::uint32_t i = threadIdx.x; i < zigzag_regions(mode) * zigzag_entries; i += blockDim.x) {
    const ZigzagEntry entry = zigzag_entry(coding, mode, i / zigzag_entries, i % zigzag_entries);
    arena.store(layout.zigzag + 8 * i, entry.offset);
    arena.store(layout.zigzag + 8 * i + 4, static_cast<std::uint32_t>(entry.negated_quantiser));
  }
  const std::uint32_t blocks = coding.block_count * mcus_per_cycle(mode, coding);
  for (std::uint32_t i = threadIdx.x; i < blocks; i += blockDim.x) {
    const CycleEntry entry = cycle_entry(coding, mode, layout, i);
    arena.store_vector(layout.cycle + 16 * i, make_uint4(entry.dc, entry.ac, entry.zigzag, entry.then));
  }
  for (std::uint32_t i = threadIdx.x; i < coding.lookup_words; i += blockDim.x) {
    arena.store(layout.lookup + 4 * i, lookup_word(coding, i, layout.lookup));
  }
}

}  // namespace slidestream::cuda
