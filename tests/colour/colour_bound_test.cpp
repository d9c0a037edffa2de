#include <string>

#include "colour/colour_bound.hpp"
#include "colour/made_profiles.hpp"

using namespace slidestream::test;

// All 16,777,216 colours: at most one in 10,000 differs from Little CMS, one in 1,000 behind a table, and by 1.

namespace {

void check_all(bool has_table, std::size_t part) {
  std::size_t number = 0;
  for (const MadeProfile& profile : made_profiles()) {
    if (profile.has_table != has_table || number++ % 3 != part) continue;
    CAPTURE(profile.name);
    const Difference found = difference(profile.bytes, 1);
    MESSAGE(profile.name << ": " << found.differ << " of " << found.colours << " colours differ, by " << found.most);
    CHECK(found.colours == 16'777'216);
    CHECK(found.most <= 1);
    CHECK(found.differ <= found.colours / (has_table ? 1'000 : 10'000));
  }
}

}  // namespace

TEST_CASE("all colours of profiles with a matrix, 1 of 3") { check_all(false, 0); }
TEST_CASE("all colours of profiles with a matrix, 2 of 3") { check_all(false, 1); }
TEST_CASE("all colours of profiles with a matrix, 3 of 3") { check_all(false, 2); }
TEST_CASE("all colours of profiles with a table, 1 of 3") { check_all(true, 0); }
TEST_CASE("all colours of profiles with a table, 2 of 3") { check_all(true, 1); }
TEST_CASE("all colours of profiles with a table, 3 of 3") { check_all(true, 2); }
