#include "runtime/stage_contract.hpp"

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>
#include <string>

using namespace slidestream::runtime;

namespace {
constexpr StageContract reader = {"reader",          Payload::strips,      MemorySpace::none, Payload::compressed_tiles,
                                  MemorySpace::host, Concurrency::parallel};
constexpr StageContract decoder = {"decoder",         Payload::compressed_tiles,
                                   MemorySpace::host, Payload::luminance_rows,
                                   MemorySpace::host, Concurrency::parallel};
constexpr StageContract device_compute = {"device compute",      Payload::luminance_rows, MemorySpace::device,
                                          Payload::partial_sums, MemorySpace::host,       Concurrency::parallel};
}  // namespace

TEST_CASE("neighbours that agree make a chain") {
  const std::array<const StageContract*, 2> chain = {&reader, &decoder};
  CHECK_NOTHROW(check_chain(chain));
}

TEST_CASE("neighbours that disagree in payload or memory are named") {
  const std::array<const StageContract*, 2> swapped = {&decoder, &reader};
  CHECK_THROWS_AS(check_chain(swapped), std::logic_error);
  const std::array<const StageContract*, 3> without_upload = {&reader, &decoder, &device_compute};
  CHECK_THROWS_WITH(check_chain(without_upload), "stage 'device compute' can't take what stage 'decoder' gives");
}
