#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "support/made_up_gpus.hpp"

/// \file
/// What tests ask of the CUDA runtime that stands in for the real one. It ends the program, with a line that says why,
/// when the rules are broken that a real one may leave unsaid: an asynchronous copy of host memory that isn't pinned,
/// pinned memory that goes away, a kernel or an event on another device's stream.

namespace slidestream::test {

/// Puts work on a fake stream, as a kernel would be.
cudaError_t fake_launch(cudaStream_t stream, std::function<void()> work);

/// How long devices take for what they are asked, where that is to be timed and not done.
struct FakeTimes {
  double copied_byte = 0.0;  ///< seconds a byte between host and device, each way by itself
  double placed_byte = 0.0;  ///< a byte of an uncompressed tile that is put into a plane
  double decoded_tile = 0.0;
  double window = 0.0;
};

/// Those of the environment, where $SLIDESTREAM_FAKE_TIMES says them: four numbers, in this order. With them nothing is
/// computed: all JPEG tiles are vouched for, pixels are what is in memory, sums are zero; and a device does one kernel
/// at a time, and one copy each way. $SLIDESTREAM_FAKE_GPUS devices are found then, of 24 GiB each.
const FakeTimes* fake_times();

/// Puts work on a fake stream that takes a device's kernels so many seconds; `work` is what is done all the same.
cudaError_t fake_timed_launch(cudaStream_t stream, double seconds, std::function<void()> work);

/// Streams sleep a moment before whatever they do. At first where $SLIDESTREAM_TEST_SEED is set.
void fake_dawdle(bool on);

/// Devices that are found, by the memory that is free on each. At first there are two of 4 GiB. No device has a context
/// then, whatever was before.
void fake_set_devices(const std::vector<std::size_t>& free_bytes);

/// Devices on which a context was made: by setting them, or by any call of a thread that has none.
std::set<int> fake_contexts();

/// Kernels that were launched since the devices were set, by device.
std::map<int, std::size_t> fake_kernels();

/// Ranges of host memory that are pinned now.
std::size_t fake_pinned();

/// What becomes of a call that fails.
enum class FakeFailure {
  once,      ///< the next call succeeds: too little memory, a wrong argument
  for_ever,  ///< as after a kernel's fault: every call fails, and work on streams isn't done any more
};

/// The `number`-th call from now on fails, counted from 0 over all calls that can fail.
void fake_fail_call(int number, FakeFailure failure);

/// Takes a failure back, the planned one too. \returns whether there was a call that failed.
bool fake_recover();

}  // namespace slidestream::test
