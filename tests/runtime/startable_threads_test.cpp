#include "runtime/startable_threads.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>

using namespace slidestream;

namespace {

std::ptrdiff_t tasks_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("threads that were tried are gone at the return, so that limits don't count them (long)") {
  // A sanitizer may start a thread of its own beside the first.
  CHECK(runtime::startable_threads(1) == 1);
  const auto before = tasks_of_this_process();
  for (int turn = 0; turn < 100; ++turn) {
    CHECK(runtime::startable_threads(40) == 40);
    REQUIRE(tasks_of_this_process() <= before);
  }
}
