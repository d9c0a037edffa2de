#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "cuda/emulator/emulator.hpp"

/// \file
/// The header of the same name among the kernels, for the emulator.

namespace slidestream::cuda {

namespace {

constexpr unsigned all_lanes = 0xFFFFFFFFU;

unsigned char* block_memory() { return reinterpret_cast<unsigned char*>(test::emulator::shared_memory(0, 1)); }

unsigned& shared_word(unsigned at) {
  return *reinterpret_cast<unsigned*>(test::emulator::shared_memory(at, sizeof(unsigned)));
}

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
unsigned load_constant(unsigned from) { return shared_word(from); }
void increment_shared(unsigned at) { ++shared_word(at); }
void add_shared(unsigned at, unsigned value) { shared_word(at) += value; }
unsigned take_shared(unsigned at) { return std::exchange(shared_word(at), 0U); }

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

std::uint32_t sum_up_to_lane(std::uint32_t value) { return test::emulator::sum_up_to_lane(value); }
std::uint32_t sum_of_lanes(std::uint32_t value) { return test::emulator::sum_of_warp(value); }
std::uint32_t lane_below(std::uint32_t value) {
  const std::uint32_t lane = threadIdx.x % 32;
  return test::emulator::value_of_lane(value, lane == 0 ? 0 : lane - 1);
}
std::uint32_t last_lane(std::uint32_t value) { return test::emulator::value_of_lane(value, 31); }
bool any_lane(bool value) { return test::emulator::sum_of_warp(value ? 1 : 0) != 0; }

/// Roots that the device may give: the value beside the right one, above or below by the argument's last bits.
float approximate_sqrt(float x) {
  const float root = std::sqrt(x);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits ^ bits >> 7 ^ bits >> 13) % 2 != 0 ? std::nextafter(root, INFINITY) : std::nextafter(root, 0.0F);
}
float approximate_log2(float x) { return std::log2(x); }

void compute_here(float2&) {}
void compute_here(unsigned&) {}
unsigned keep_in_register(unsigned value) { return value; }
unsigned keep(unsigned value) { return value; }

}  // namespace

}  // namespace slidestream::cuda
