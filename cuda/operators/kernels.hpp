#pragma once

#include <memory>
#include <slidestream/config.hpp>

#include "cuda/operators/image_kernel.hpp"

/// \file
/// The kernels that there are, one an operator; each is fast where `DeviceImageKernel::enqueue` says, and right
/// everywhere.

namespace slidestream::cuda {

/// A copy.
std::unique_ptr<DeviceImageKernel> make_identity_kernel(const Config& config);
std::unique_ptr<DeviceImageKernel> make_sobel_kernel(const Config& config);
std::unique_ptr<DeviceImageKernel> make_gaussian_kernel(const Config& config);
std::unique_ptr<DeviceImageKernel> make_stain_kernel(const Config& config);

/// Puts the copy of `out.rect`, which `in` holds in the same format, on `stream`. \throws CudaError.
void enqueue_copy(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
                  cudaStream_t stream);

}  // namespace slidestream::cuda
