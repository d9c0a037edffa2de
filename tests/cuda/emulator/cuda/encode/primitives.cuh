#pragma once

#include <cstdint>

#include "cuda/emulator/emulator.hpp"

/// \file
/// The header of the same name among the kernels, for the emulator.

namespace slidestream::cuda {

namespace {

unsigned char* block_memory() { return reinterpret_cast<unsigned char*>(test::emulator::shared_memory(0, 1)); }
std::uint32_t sum_up_to_lane(std::uint32_t value) { return test::emulator::sum_up_to_lane(value); }
std::uint32_t sum_of_lanes(std::uint32_t value) { return test::emulator::sum_of_warp(value); }
std::uint32_t lane_below(std::uint32_t value) {
  const std::uint32_t lane = threadIdx.x % 32;
  return test::emulator::value_of_lane(value, lane == 0 ? 0 : lane - 1);
}
std::uint32_t last_lane(std::uint32_t value) { return test::emulator::value_of_lane(value, 31); }
bool any_lane(bool value) { return test::emulator::sum_of_warp(value ? 1 : 0) != 0; }

}  // namespace

}  // namespace slidestream::cuda
