#include <slidestream/error.hpp>

#include "planning/device_sizing.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

GpuChoice choose_gpus(const Config&) { return {{}, "this build has no CUDA"}; }

void check_gpus(const Config&, const std::vector<int>&) {}

void wake_gpus(const std::vector<int>&) noexcept {}

std::unique_ptr<GpuSet> make_gpu_set(RunContext&, const std::vector<int>&) {
  throw ConfigError("this build has no CUDA");
}

DeviceFacts facts_of_device(const Config&, const DeviceWork&, int) { throw ConfigError("this build has no CUDA"); }

}  // namespace slidestream
