#pragma once

#include <cstdlib>

/// \file
/// How much is gone over by tests of many alike: some of it in each check, all of it in the deep one.

namespace slidestream::test {

/// Whether all of it is: the tests "wide: ..." have SLIDESTREAM_TEST_WIDE in their environment.
inline bool is_wide() { return std::getenv("SLIDESTREAM_TEST_WIDE") != nullptr; }

/// So many of one kind.
inline int wide_or_few(int wide, int few) { return is_wide() ? wide : few; }

}  // namespace slidestream::test
