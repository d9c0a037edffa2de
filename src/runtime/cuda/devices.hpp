#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// \file
/// Which GPUs this process can use. The driver is looked for here, at run time: a machine without one is an answer, not
/// an error.

namespace slidestream::runtime::cuda {

struct Device {
  int ordinal = 0;  ///< as CUDA counts, after CUDA_VISIBLE_DEVICES
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  std::size_t memory = 0;  ///< bytes in all
  int numa_node = -1;      ///< of the host, -1 when unknown or there is but one
};

struct Devices {
  std::vector<Device> found;
  std::string why_none;  ///< one clause, when none was found
};

/// Never throws for a missing or unfit driver. Makes no context, so it costs no device memory.
Devices find_devices();

/// The device that the calling thread has in use; 0 where it has none. Makes no context.
int current_device() noexcept;

/// Makes `ordinal` the calling thread's device while it lives. A thread that had no device in use before keeps this
/// one: going back to device 0, where every thread begins, would take some 500 MiB there for a context. \throws
/// CudaError.
class DeviceScope {
 public:
  explicit DeviceScope(int ordinal);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = none;
  static constexpr int none = -1;  ///< to go back to
};

}  // namespace slidestream::runtime::cuda
