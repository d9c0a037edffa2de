#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/device/primitives.cuh"
#include "cuda/emulator/emulator.hpp"

/// \file
/// The header of the same name among the kernels, for the emulator.

namespace slidestream::cuda {

namespace {

struct BlockArena {
  static std::uint32_t load(std::uint32_t at) { return shared_word(at); }
  static std::uint32_t load_byte(std::uint32_t at) {
    return std::to_integer<std::uint32_t>(*test::emulator::shared_memory(at, 1));
  }
  static std::uint32_t load_if(bool condition, std::uint32_t at) { return condition ? load(at) : 0; }
  static void store(std::uint32_t at, std::uint32_t value) { shared_word(at) = value; }
  static void store_if(bool condition, std::uint32_t at, std::uint32_t value) {
    if (condition) store(at, value);
  }
  static void fetch_if(bool condition, std::uint32_t& value, const std::uint32_t* from) {
    if (condition) value = *from;
  }
  static void keep_if(bool condition, std::uint32_t* to, std::uint32_t value) {
    if (condition) *to = value;
  }
};

}  // namespace

}  // namespace slidestream::cuda
