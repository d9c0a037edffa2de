#include "system/descriptors.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstddef>

using namespace slidestream;

// UBSan looks at objects through a pipe, and without a descriptor finds fault with them.
#ifndef SLIDESTREAM_SANITIZED
TEST_CASE("files that can still be opened are counted") {
  CHECK(free_descriptors(0) == 0);
  CHECK(free_descriptors(4) == 4);
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  std::size_t last = 0;
  for (::rlim_t limit = 3; limit < 200 && last < 4; ++limit) {
    const ::rlimit tight = {limit, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
    const std::size_t now = free_descriptors(4);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    // Each one that is allowed more is one more, or open.
    CHECK(now >= last);
    CHECK(now <= last + 1);
    last = now;
  }
  CHECK(last == 4);
}
#endif
