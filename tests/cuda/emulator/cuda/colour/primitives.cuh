#pragma once

#include <cstddef>

#include "cuda/emulator/emulator.hpp"

/// \file
/// The header of the same name among the kernels, for the emulator.

namespace slidestream::cuda {

namespace {

unsigned char* block_memory() { return reinterpret_cast<unsigned char*>(test::emulator::shared_memory(0, 1)); }

unsigned shared_place(const void* at) {
  return static_cast<unsigned>(static_cast<const std::byte*>(at) - test::emulator::shared_memory(0, 1));
}
unsigned load_constant(unsigned place) {
  return *reinterpret_cast<const unsigned*>(test::emulator::shared_memory(place, sizeof(unsigned)));
}
unsigned keep(unsigned value) { return value; }

}  // namespace

}  // namespace slidestream::cuda
