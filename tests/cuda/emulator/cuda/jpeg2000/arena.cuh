#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/emulator/emulator.hpp"

/// \file
/// The header of the same name among the kernels, for the emulator.

namespace slidestream::cuda {

inline constexpr unsigned all_lanes = 0xFFFFFFFFU;

namespace {

unsigned char* block_memory() { return reinterpret_cast<unsigned char*>(test::emulator::shared_memory(0, 1)); }

std::uint32_t shared_address(const void* at) {
  return static_cast<std::uint32_t>(static_cast<const std::byte*>(at) - test::emulator::shared_memory(0, 1));
}

void keep(std::uint32_t&) {}

struct BlockArena {
  static std::uint32_t load(std::uint32_t at) {
    return *reinterpret_cast<const std::uint32_t*>(test::emulator::shared_memory(at, 4));
  }
  static std::uint32_t load_byte(std::uint32_t at) {
    return std::to_integer<std::uint32_t>(*test::emulator::shared_memory(at, 1));
  }
  static std::uint32_t load_if(bool condition, std::uint32_t at) { return condition ? load(at) : 0; }
  static void store(std::uint32_t at, std::uint32_t value) {
    *reinterpret_cast<std::uint32_t*>(test::emulator::shared_memory(at, 4)) = value;
  }
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
