#include "tiling/batch_memory.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace slidestream {
namespace {

// Memory from the system is zero, so what is marked was used before.
constexpr std::uint8_t mark = 77;
constexpr std::size_t bytes = std::size_t{24} << 20;

std::shared_ptr<BatchMemory> pool_of(std::size_t size) { return std::make_shared<BatchMemory>(size, 0); }

/// So many blocks are held at a time, marked and let go, each by a pool of its own.
void leave_marked(std::size_t blocks) {
  std::vector<std::shared_ptr<BatchMemory::Lease>> leases;
  for (std::size_t i = 0; i < blocks; ++i) {
    leases.push_back(pool_of(bytes)->take());
    *leases.back()->data() = mark;
  }
}

/// Marked blocks that new pools find. They are held, and have no mark afterwards.
std::size_t marked(std::size_t size, std::size_t tries) {
  std::vector<std::shared_ptr<BatchMemory::Lease>> leases;
  std::size_t found = 0;
  for (std::size_t i = 0; i < tries; ++i) {
    leases.push_back(pool_of(size)->take());
    found += *leases.back()->data() == mark ? 1 : 0;
    *leases.back()->data() = 0;
  }
  return found;
}

TEST_CASE("memory of a pool that is gone is used again by another") {
  leave_marked(2);
  CHECK(marked(bytes, 3) == 2);
  leave_marked(1);
  // Of a little less it is taken, too.
  CHECK(marked(bytes - bytes / 4, 1) == 1);
}

TEST_CASE("what a pool keeps itself goes to others when it is gone or keeps less") {
  SUBCASE("gone") {
    const auto pool = std::make_shared<BatchMemory>(bytes, 1);
    *pool->take()->data() = mark;
    CHECK(marked(bytes, 6) == 0);
    CHECK(*pool->take()->data() == mark);
  }
  SUBCASE("less") {
    const auto pool = std::make_shared<BatchMemory>(bytes, 1);
    *pool->take()->data() = mark;
    pool->keep(0);
  }
  CHECK(marked(bytes, 6) == 1);
}

TEST_CASE("memory that is much too long isn't taken, nor any that is too short") {
  leave_marked(1);
  CHECK(marked(bytes / 2, 3) == 0);
  CHECK(marked(bytes, 1) == 1);
  leave_marked(1);
  CHECK(marked(bytes + 1, 6) == 0);
}

TEST_CASE("spare memory is bounded") {
  constexpr std::size_t most = BatchMemory::most_spare / (bytes + BatchMemory::offset);
  leave_marked(most + 3);
  CHECK(marked(bytes, most + 3) == most);
}

TEST_CASE("a child of a fork takes memory of its own") {
  leave_marked(2);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(marked(bytes, 3) == 0 ? 0 : 1);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(marked(bytes, 3) == 2);
}

TEST_CASE("memory of batches is used again when it was let go, and not before") {
  const auto memory = std::make_shared<BatchMemory>(1 << 12, 2);
  auto first = memory->take();
  std::uint8_t* const place = first->data();
  place[0] = 5;
  CHECK(memory->take()->data() != place);
  first = nullptr;
  first = memory->take();
  const auto second = memory->take();
  CHECK((first->data() == place || second->data() == place));
  // What is handed back early stays readable.
  auto lent = first->data() == place ? first : second;
  lent->hand_back();
  const auto other = memory->take();
  CHECK(other->data() == place);
  CHECK(lent->data()[0] == 5);
}

}  // namespace
}  // namespace slidestream
