#include <doctest/doctest.h>

#include "support/test_data.hpp"

/// \file
/// What tests/scripts/skipping_test.py runs: cases that are skipped, and others that only say so.

using slidestream::test::report_skipped;

TEST_CASE("reports it") { report_skipped("no reason"); }

TEST_CASE("says it") { MESSAGE("SKIPPED: no reason"); }

TEST_CASE("reports it and fails") {
  report_skipped("no reason");
  CHECK(false);
}

TEST_CASE("skips one part of two") {
  SUBCASE("one") { report_skipped("no reason"); }
  SUBCASE("two") { CHECK(true); }
}

TEST_CASE("passes") { CHECK(true); }
