#include "runtime/host_memory.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <new>
#include <utility>

using slidestream::runtime::HostMemory;

TEST_CASE("host memory is page-aligned, zero and writable to its end") {
  HostMemory memory(100001);
  CHECK(memory.bytes().size() == 100001);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % 4096 == 0);
  CHECK(memory.bytes().back() == std::byte{0});
  memory.bytes().back() = std::byte{1};
  HostMemory moved = std::move(memory);
  CHECK(moved.bytes().back() == std::byte{1});
}

TEST_CASE("more than the address space is refused") { CHECK_THROWS_AS(HostMemory(SIZE_MAX / 2), std::bad_alloc); }
