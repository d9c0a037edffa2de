#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <functional>

namespace slidestream::test {

/// Puts work on a fake stream, as a kernel would be.
void fake_launch(cudaStream_t stream, std::function<void()> work);

/// From now on every call fails, as after a kernel's fault.
void fake_lose_device(bool is_lost);

/// Devices that are found.
void fake_set_devices(int count);

}  // namespace slidestream::test
