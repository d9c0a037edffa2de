#include "cuda/operators/image_kernel.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "cuda/operators/kernels.hpp"

namespace slidestream::cuda {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<DeviceImageKernel> (*make)(const Config& config);
};

/// One line an operator that has a kernel.
constexpr std::array registry = {
    Entry{"identity", make_identity_kernel},
    Entry{"sobel", make_sobel_kernel},
    Entry{"gaussian", make_gaussian_kernel},
    Entry{"stain", make_stain_kernel},
};

}  // namespace

std::unique_ptr<DeviceImageKernel> make_device_image_kernel(const std::string& name, const Config& config) {
  const auto entry = std::ranges::find(registry, std::string_view(name), &Entry::name);
  return entry == registry.end() ? nullptr : entry->make(config);
}

}  // namespace slidestream::cuda
