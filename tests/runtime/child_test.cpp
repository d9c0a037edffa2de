// Other programs, asked for a line.

#include "runtime/child.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

using slidestream::runtime::output_of;
using namespace std::chrono_literals;

TEST_CASE("What another program says is what it wrote when it ended well") {
  using Words = std::vector<std::string>;
  constexpr auto long_enough = 60s;
  CHECK(output_of(Words{"sh", "-c", "echo one; echo two >&2; echo three"}, long_enough) == "one\nthree\n");
  CHECK(output_of(Words{"sh", "-c", "cat"}, long_enough) == "");
  CHECK(output_of(Words{"sh", "-c", "exec >&-; sleep 0.05"}, long_enough) == "");
  CHECK(output_of(Words{"sh", "-c", "echo one; exit 1"}, long_enough) == std::nullopt);
  CHECK(output_of(Words{"sh", "-c", "echo one; kill -9 $$"}, long_enough) == std::nullopt);
  CHECK(output_of(Words{"no program of this name"}, long_enough) == std::nullopt);
  CHECK(output_of(Words{"yes"}, long_enough) == std::nullopt);
  CHECK(output_of(Words{}, long_enough) == std::nullopt);
}

TEST_CASE("A program that doesn't end isn't waited for") {
  using Words = std::vector<std::string>;
  CHECK(output_of(Words{"sleep", "100000"}, 50ms) == std::nullopt);
  CHECK(output_of(Words{"sh", "-c", "exec >&-; exec sleep 100000"}, 50ms) == std::nullopt);
  // What it left behind keeps its output open: for as long as the file is there.
  const slidestream::test::TemporaryFolder folder;
  const std::string file = folder.write("file", std::string("x")).string();
  CHECK(output_of(Words{"sh", "-c", "while test -e \"$0\"; do sleep 0.1; done & echo one", file}, 50ms) ==
        std::nullopt);
}
