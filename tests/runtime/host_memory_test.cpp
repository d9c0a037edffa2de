#include "runtime/host_memory.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

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

TEST_CASE("pages that are taken are there, and keep what was in them") {
  constexpr std::size_t pages = 5;
  HostMemory memory(pages * 4096);
  memory.bytes()[4096] = std::byte{7};
  slidestream::runtime::populate(memory.bytes());
  unsigned char resident[pages] = {};
  REQUIRE(mincore(memory.bytes().data(), memory.bytes().size(), resident) == 0);
  for (const unsigned char page : resident) CHECK((page & 1) == 1);
  for (std::size_t i = 0; i < pages * 4096; ++i) REQUIRE(memory.bytes()[i] == std::byte(i == 4096 ? 7 : 0));
}

TEST_CASE("more than the address space is refused") { CHECK_THROWS_AS(HostMemory(SIZE_MAX / 2), std::bad_alloc); }
