#pragma once

#include <cstddef>
#include <cstdint>

/// \file
/// Instructions of the device that C++ has no words for, each a function. tests/cuda/emulator has a header of the same
/// name that does the same on the host.

namespace slidestream::cuda {

namespace {

constexpr unsigned all_lanes = 0xFFFFFFFFU;

/// The thread block's dynamic shared memory.
__device__ __forceinline__ unsigned char* block_memory() {
  extern __shared__ __align__(1024) unsigned char memory[];
  return memory;
}

// Shared memory by address. Addresses are made of one that changes, so that the compiler doesn't keep one a place.

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}
__device__ __forceinline__ void store_shared(unsigned to, float2 a, float2 b) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y) : "memory");
}
__device__ __forceinline__ void store_shared(unsigned to, float2 a) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(a.x), "f"(a.y) : "memory");
}
__device__ __forceinline__ void load_shared(float2& a, float2& b, unsigned from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a.x), "=f"(a.y), "=f"(b.x), "=f"(b.y)
               : "r"(from)
               : "memory");
}
/// Loads a word that never changes. `from` is derived from a value that `keep` returned.
__device__ __forceinline__ unsigned load_constant(unsigned from) {
  unsigned value;
  asm("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(from));
  return value;
}
/// Adds one to a counter, without waiting.
__device__ __forceinline__ void increment_shared(unsigned at) {
  asm volatile("red.shared.add.u32 [%0], 1;" ::"r"(at) : "memory");
}
/// Adds to a counter, without waiting.
__device__ __forceinline__ void add_shared(unsigned at, unsigned value) {
  asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
}
/// Takes what a counter holds, and leaves 0 there.
__device__ __forceinline__ unsigned take_shared(unsigned at) {
  unsigned value;
  asm volatile("atom.shared.exch.b32 %0, [%1], 0;" : "=r"(value) : "r"(at) : "memory");
  return value;
}

/// Copies 16 bytes from device memory to shared memory, `offset` bytes on in both, while the thread goes on.
template <int offset>
__device__ __forceinline__ void copy_async(unsigned to, const std::byte* from) {
  asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %2], 16;" ::"r"(to), "l"(from), "n"(offset) : "memory");
}
/// Waits for this thread's copies.
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// A hardware barrier for `threads` threads in all: this one arrives and does not wait. The lanes of a warp must arrive
/// together; half warps that arrive one after the other are an illegal instruction.
template <int threads>
__device__ __forceinline__ void arrive_at_barrier(unsigned number) {
  __syncwarp();
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(threads) : "memory");
}
/// The same, and waits for the others.
template <int threads>
__device__ __forceinline__ void wait_at_barrier(unsigned number) {
  __syncwarp();
  asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(threads) : "memory");
}

/// Compute capability 9.x: this group of four warps keeps `count` registers a thread, and leaves the rest to others.
template <int count>
__device__ __forceinline__ void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
/// This group takes as many as `count`, as soon as they are there.
template <int count>
__device__ __forceinline__ void claim_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

// What the lanes of a warp do together.

/// The sum of the values of the warp's lanes up to this one.
__device__ __forceinline__ std::uint32_t sum_up_to_lane(std::uint32_t value) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const std::uint32_t below = __shfl_up_sync(all_lanes, value, distance);
    if (lane >= distance) value += below;
  }
  return value;
}
__device__ __forceinline__ std::uint32_t sum_of_lanes(std::uint32_t value) {
  return __reduce_add_sync(all_lanes, value);
}
/// The value of the lane before; the first lane gets its own.
__device__ __forceinline__ std::uint32_t lane_below(std::uint32_t value) { return __shfl_up_sync(all_lanes, value, 1); }
__device__ __forceinline__ std::uint32_t last_lane(std::uint32_t value) { return __shfl_sync(all_lanes, value, 31); }
__device__ __forceinline__ bool any_lane(bool value) { return __any_sync(all_lanes, value) != 0; }

/// The hardware's root and logarithm, good to the last bit or two. Subnormal numbers count as 0. The root's relative
/// error is at most 2^-23 (PTX ISA, sqrt.approx.f32).
__device__ __forceinline__ float approximate_sqrt(float x) {
  float root;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
__device__ __forceinline__ float approximate_log2(float x) {
  float logarithm;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(logarithm) : "f"(x));
  return logarithm;
}

// How the compiler places values.

/// Makes the compiler compute a value here, once, instead of later or again at each use.
__device__ __forceinline__ void compute_here(float2& value) { asm volatile("" : "+f"(value.x), "+f"(value.y)); }
__device__ __forceinline__ void compute_here(unsigned& value) { asm volatile("" : "+r"(value)); }
/// The same for the assembler, too: it can't know that each lane gets its own value. All lanes of the warp ask.
__device__ __forceinline__ unsigned keep_in_register(unsigned value) {
  return __shfl_sync(all_lanes, value, threadIdx.x % 32);
}
/// The same as `compute_here`, after all earlier writes to memory.
__device__ __forceinline__ unsigned keep(unsigned value) {
  asm volatile("" : "+r"(value)::"memory");
  return value;
}

}  // namespace

}  // namespace slidestream::cuda
