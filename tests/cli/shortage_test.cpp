#include "cli/shortage.hpp"

#include <doctest/doctest.h>

#include <new>

using namespace slidestream;
using namespace slidestream::cli;

TEST_CASE("memory that lacks is told with what it was for, and what to do") {
  const std::string text = cause_of(std::bad_alloc(), "a.svs");
  CHECK(text == std::string("a.svs: ") + memory_shortage);
  CHECK(text.starts_with("a.svs: out of memory: lower pipeline.memory_mib"));
  CHECK(cause_of(std::bad_array_new_length(), "a.svs") == text);
  CHECK(cause_of(OutputError("a.csv: No space left on device"), "a.svs") == "a.csv: No space left on device");
}
