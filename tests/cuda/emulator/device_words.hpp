#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <utility>

#include "cuda/emulator/emulator.hpp"

/// \file
/// What kernels find without including anything, for the emulator. Included before any of them, between a `push` of
/// diagnostics and their `pop`.

// Kernels are compiled for a GPU elsewhere: here only what is wrong for the host counts.
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wunused-function"

#undef __device__
#undef __global__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __shared__
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
// One block runs at a time.
#define __shared__ static

namespace slidestream::cuda {

namespace {

unsigned no_number() { return 0; }
unsigned one_block() { return 1; }

/// threadIdx and its like. Blocks lie in a row.
template <unsigned (*value)(), unsigned (*below)()>
struct BuiltIn {
  template <unsigned (*number)()>
  struct Component {
    operator unsigned() const { return number(); }  // NOLINT: converts as the original does
  };
  Component<value> x;
  Component<below> y;
};
constexpr BuiltIn<test::emulator::thread, no_number> threadIdx;
constexpr BuiltIn<test::emulator::block, no_number> blockIdx;
constexpr BuiltIn<test::emulator::blocks, one_block> gridDim;

void __syncwarp() { test::emulator::synchronise_warp(); }
void __syncthreads() { test::emulator::synchronise_block(); }

float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
unsigned __float_as_uint(float value) { return std::bit_cast<unsigned>(value); }
int __float2int_rn(float value) { return static_cast<int>(std::nearbyint(value)); }
long long __float2ll_rn(float value) { return std::llrint(value); }
float __fsqrt_rn(float value) { return std::sqrt(value); }
float __fmaf_rd(float a, float b, float c) {
  const double exact = static_cast<double>(a) * b + c;
  const float rounded = static_cast<float>(exact);
  return rounded > exact ? std::nextafter(rounded, -std::numeric_limits<float>::infinity()) : rounded;
}
void sincospif(float x, float* sine, float* cosine) {
  *sine = static_cast<float>(std::sin(std::numbers::pi * x));
  *cosine = static_cast<float>(std::cos(std::numbers::pi * x));
}

[[maybe_unused]] unsigned __byte_perm(unsigned low, unsigned high, unsigned which) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  unsigned found = 0;
  for (unsigned i = 0; i < 4; ++i) found |= static_cast<unsigned>(bytes >> 8 * (which >> 4 * i & 7U) & 255U) << 8 * i;
  return found;
}

/// For all lanes of a warp.
float __shfl_sync(unsigned, float value, int lane) {
  return __uint_as_float(test::emulator::value_of_lane(__float_as_uint(value), static_cast<unsigned>(lane)));
}
[[maybe_unused]] unsigned __shfl_sync(unsigned, unsigned value, int lane) {
  return test::emulator::value_of_lane(value, static_cast<unsigned>(lane));
}
/// From `distance` lanes before or behind, within groups of `width` lanes; the lane's own at the group's end.
template <class T>
T __shfl_up_sync(unsigned, T value, unsigned distance, int width = 32) {
  const unsigned lane = threadIdx.x % 32, first = lane / static_cast<unsigned>(width) * static_cast<unsigned>(width);
  const bool inside = lane >= first + distance;
  return std::bit_cast<T>(
      test::emulator::value_of_lane(std::bit_cast<unsigned>(value), inside ? lane - distance : lane));
}
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned distance, int width = 32) {
  const unsigned lane = threadIdx.x % 32, first = lane / static_cast<unsigned>(width) * static_cast<unsigned>(width);
  const bool inside = lane + distance < first + static_cast<unsigned>(width);
  return std::bit_cast<T>(
      test::emulator::value_of_lane(std::bit_cast<unsigned>(value), inside ? lane + distance : lane));
}
[[maybe_unused]] unsigned __ballot_sync(unsigned, bool value) {
  return test::emulator::sum_of_warp(value ? 1U << threadIdx.x % 32 : 0U);
}
int __reduce_add_sync(unsigned, int value) {
  return static_cast<int>(test::emulator::sum_of_warp(static_cast<unsigned>(value)));
}
unsigned long long atomicAdd(unsigned long long* at, unsigned long long value) {
  return std::exchange(*at, *at + value);
}
unsigned atomicAdd(unsigned* at, unsigned value) { return std::exchange(*at, *at + value); }
[[maybe_unused]] unsigned atomicMax(unsigned* at, unsigned value) {
  return std::exchange(*at, *at < value ? value : *at);
}
[[maybe_unused]] int __popc(unsigned value) { return std::popcount(value); }
template <class T>
T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T max(T a, T b) {
  return a < b ? b : a;
}

}  // namespace

}  // namespace slidestream::cuda
