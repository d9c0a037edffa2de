#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "cuda/emulator/emulator.hpp"

/// \file
/// The header of the same name among the kernels, for the emulator.

namespace slidestream::cuda {

namespace {

unsigned char* block_memory() { return reinterpret_cast<unsigned char*>(test::emulator::shared_memory(0, 1)); }

/// Roots that the device may give: the value beside the right one, above or below by the argument's last bits.
float approximate_root(float value) {
  const float root = std::sqrt(value);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits ^ bits >> 7 ^ bits >> 13) % 2 != 0 ? std::nextafter(root, INFINITY) : std::nextafter(root, 0.0F);
}

}  // namespace

}  // namespace slidestream::cuda
