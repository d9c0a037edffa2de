#include "planning/slot_demand.hpp"

#include <doctest/doctest.h>

using namespace slidestream;

TEST_CASE("one slot more is asked for when all are taken and the device hasn't enough to do") {
  const std::int64_t large = device_batch_pixels;
  CHECK(wants_slot({.wanted = 1, .ready = 1, .taken = 1}));
  CHECK(wants_slot({.wanted = 3, .ready = 3, .taken = 3, .batches_on_device = 2, .pixels_on_device = 2 * large}));
  CHECK_FALSE(wants_slot({.wanted = 4, .ready = 4, .taken = 4, .batches_on_device = 3, .pixels_on_device = 3 * large}));
  CHECK_FALSE(wants_slot({.wanted = 4, .ready = 4, .taken = 4, .batches_on_device = 3, .pixels_on_device = 2 * large}));
  // Small batches don't fill a device.
  CHECK(wants_slot({.wanted = 7, .ready = 7, .taken = 7, .batches_on_device = 6, .pixels_on_device = large}));
  // One is free, or on its way.
  CHECK_FALSE(wants_slot({.wanted = 3, .ready = 3, .taken = 2}));
  CHECK_FALSE(wants_slot({.wanted = 3, .ready = 2, .taken = 2}));
}
