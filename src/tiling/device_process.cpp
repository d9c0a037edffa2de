#include "tiling/device_process.hpp"

#include <unistd.h>

#include <atomic>
#include <optional>
#include <slidestream/error.hpp>
#include <string>

#include "runtime/cuda/devices.hpp"
#include "tiling/device_tiles.hpp"

namespace slidestream {

void require_own_process() {
  static std::atomic<pid_t> process{0};
  pid_t first = 0;
  if (process.compare_exchange_strong(first, ::getpid()) || first == ::getpid()) return;
  throw CudaError("CUDA can't be used in a process that was forked from one that uses it: start it anew (spawn)");
}

int usable_device(std::optional<int> ordinal) {
  require_own_process();
  const runtime::cuda::Devices devices = runtime::cuda::find_devices();
  if (devices.found.empty()) throw CudaError("no GPU can be used: " + devices.why_none);
  const int wanted = ordinal ? *ordinal : runtime::cuda::current_device();
  for (const runtime::cuda::Device& device : devices.found) {
    if (device.ordinal == wanted) return wanted;
  }
  throw CudaError("there is no GPU " + std::to_string(wanted) + "; there " +
                  (devices.found.size() == 1 ? "is 1" : "are " + std::to_string(devices.found.size())) +
                  ", counted from 0");
}

}  // namespace slidestream
