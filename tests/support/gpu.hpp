#pragma once

#include <slidestream/config.hpp>

#include "stages/gpu/gpu_set.hpp"
#include "support/test_data.hpp"

namespace slidestream::test {

/// Number of GPUs that a run may use here; without one the test is marked as skipped.
inline std::size_t gpus_or_skip() {
  const GpuChoice choice = choose_gpus({});
  if (choice.devices.empty()) report_skipped("no GPU: " + choice.why_none);
  return choice.devices.size();
}

}  // namespace slidestream::test
