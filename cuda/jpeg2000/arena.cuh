#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/device/primitives.cuh"
#include "cuda/jpeg/shared_arena.cuh"

/// \file
/// The code-block decoder's accesses to memory. The tests' emulator has a header of the same name.

namespace slidestream::cuda {

/// Shared memory as the code-block decoder's arena. \see BlockDecoder. Accesses under a condition are predicated
/// instructions, where a compiler would make branches of them.
struct BlockArena : SharedArena {
  __device__ __forceinline__ std::uint32_t load_byte(std::uint32_t address) const {
    std::uint32_t value;
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value) : "r"(address));
    return value;
  }
  __device__ __forceinline__ std::uint32_t load_if(bool condition, std::uint32_t address) const {
    return SharedArena::load_if(condition, address, 0);
  }
  __device__ __forceinline__ void store_if(bool condition, std::uint32_t address, std::uint32_t value) const {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p st.shared.u32 [%0], %1; }" ::"r"(address), "r"(value),
                 "r"(static_cast<std::uint32_t>(condition)));
  }
  __device__ __forceinline__ void fetch_if(bool condition, std::uint32_t& value, const std::uint32_t* from) const {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u32 %0, [%1]; }"
                 : "+r"(value)
                 : "l"(from), "r"(static_cast<std::uint32_t>(condition)));
  }
  __device__ __forceinline__ void keep_if(bool condition, std::uint32_t* to, std::uint32_t value) const {
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p st.global.u32 [%0], %1; }" ::"l"(to), "r"(value),
                 "r"(static_cast<std::uint32_t>(condition)));
  }
};

}  // namespace slidestream::cuda
