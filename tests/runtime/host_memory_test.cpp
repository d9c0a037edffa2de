#include "runtime/host_memory.hpp"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

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

TEST_CASE("several threads take all pages of a block, of whatever length") {
  constexpr std::size_t page = 4096;
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  for (const std::size_t bytes : {std::size_t{0}, page, huge_page, 3 * huge_page + 5 * page}) {
    for (const std::size_t threads : {0, 1, 2, 3, 16}) {
      CAPTURE(bytes);
      CAPTURE(threads);
      HostMemory memory(bytes);
      slidestream::runtime::populate(memory.bytes(), threads);
      std::vector<unsigned char> resident(bytes / page);
      if (bytes == 0) continue;
      REQUIRE(mincore(memory.bytes().data(), bytes, resident.data()) == 0);
      CHECK(std::ranges::all_of(resident, [](unsigned char at) { return (at & 1) == 1; }));
    }
  }
}

TEST_CASE("more than the address space is refused") { CHECK_THROWS_AS(HostMemory(SIZE_MAX / 2), std::bad_alloc); }
