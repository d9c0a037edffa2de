#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "cuda/emulator/emulator.hpp"

/// \file
/// The header of the same name among the kernels, for the emulator.

namespace slidestream::cuda {

namespace {

unsigned char* block_memory() { return reinterpret_cast<unsigned char*>(test::emulator::shared_memory(0, 1)); }

unsigned shared_address(const void* at) {
  return static_cast<unsigned>(static_cast<const std::byte*>(at) - test::emulator::shared_memory(0, 1));
}
void store_shared(unsigned to, float2 a, float2 b) {
  const float2 both[2] = {a, b};
  std::memcpy(test::emulator::shared_memory(to, sizeof(both)), both, sizeof(both));
}
void store_shared(unsigned to, float2 a) { std::memcpy(test::emulator::shared_memory(to, sizeof(a)), &a, sizeof(a)); }
void load_shared(float2& a, float2& b, unsigned from) {
  float2 both[2];
  std::memcpy(both, test::emulator::shared_memory(from, sizeof(both)), sizeof(both));
  a = both[0];
  b = both[1];
}
void increment_shared(unsigned at) {
  ++*reinterpret_cast<unsigned*>(test::emulator::shared_memory(at, sizeof(unsigned)));
}
void add_shared(unsigned at, unsigned value) {
  *reinterpret_cast<unsigned*>(test::emulator::shared_memory(at, sizeof(unsigned))) += value;
}
unsigned take_shared(unsigned at) {
  return std::exchange(*reinterpret_cast<unsigned*>(test::emulator::shared_memory(at, sizeof(unsigned))), 0U);
}

template <int offset>
void copy_async(unsigned to, const std::byte* from) {
  std::memcpy(test::emulator::shared_memory(to + offset, 16), from + offset, 16);
}
void wait_for_copies() {}

template <int threads>
void arrive_at_barrier(unsigned number) {
  test::emulator::synchronise_warp();
  test::emulator::arrive_at_barrier(number, threads);
}
template <int threads>
void wait_at_barrier(unsigned number) {
  test::emulator::synchronise_warp();
  test::emulator::wait_at_barrier(number, threads);
}

template <int count>
void release_registers() {}
template <int count>
void claim_registers() {}

float approximate_sqrt(float x) { return std::sqrt(x); }
float approximate_log2(float x) { return std::log2(x); }
void settle(float2&) {}

}  // namespace

}  // namespace slidestream::cuda
