#include "runtime/cuda/devices.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "runtime/cuda/check.hpp"

namespace slidestream::runtime::cuda {
namespace {

/// The node that the device's PCI slot belongs to, by the kernel's own account.
int numa_node_of(int ordinal) {
  char bus[32] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof(bus), ordinal) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return -1;
  }
  std::string name = bus;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  int node = -1;
  std::ifstream("/sys/bus/pci/devices/" + name + "/numa_node") >> node;
  return node;
}

std::string why(cudaError_t code) {
  switch (code) {
    case cudaErrorNoDevice:
      return "the driver sees no CUDA device";
    case cudaErrorInsufficientDriver: {
      int driver = 0;
      cudaDriverGetVersion(&driver);
      if (driver == 0) return "no NVIDIA driver is installed";
      return "the NVIDIA driver is for CUDA " + std::to_string(driver / 1000) + "." +
             std::to_string(driver % 1000 / 10) + ", this program needs CUDA " + std::to_string(CUDART_VERSION / 1000) +
             ".0 or newer";
    }
    default:
      return std::string("the NVIDIA driver can't be used: ") + cudaGetErrorString(code);
  }
}

using CurrentContext = int (*)(void** context);  // cuCtxGetCurrent, as cuda.h declares it; 0 is success

CurrentContext find_current_context() {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion("cuCtxGetCurrent", &entry, 12000, cudaEnableDefault, &found);
  if (code == cudaSuccess && found == cudaDriverEntryPointSuccess) return reinterpret_cast<CurrentContext>(entry);
  static_cast<void>(cudaGetLastError());
  return nullptr;
}

/// Whether the calling thread has a device's context in use. Makes none, as calls of the runtime would.
bool has_context() {
  static const CurrentContext current = find_current_context();
  void* context = nullptr;
  return current != nullptr && current(&context) == 0 && context != nullptr;
}

}  // namespace

Devices find_devices() {
  Devices devices;
  int count = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    devices.why_none = why(code);
    return devices;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      continue;
    }
    Device device;
    device.ordinal = ordinal;
    device.name = properties.name;
    device.major = properties.major;
    device.minor = properties.minor;
    device.memory = properties.totalGlobalMem;
    device.numa_node = numa_node_of(ordinal);
    devices.found.push_back(device);
  }
  if (devices.found.empty()) devices.why_none = "the driver sees no CUDA device";
  return devices;
}

int current_device() noexcept {
  int device = 0;
  return has_context() && cudaGetDevice(&device) == cudaSuccess ? device : 0;
}

DeviceScope::DeviceScope(int ordinal) {
  if (has_context()) SLIDESTREAM_CUDA(cudaGetDevice(&before_));
  SLIDESTREAM_CUDA(cudaSetDevice(ordinal));
}

DeviceScope::~DeviceScope() {
  if (before_ != none) SLIDESTREAM_CUDA_NOEXCEPT(cudaSetDevice(before_));
}

}  // namespace slidestream::runtime::cuda
