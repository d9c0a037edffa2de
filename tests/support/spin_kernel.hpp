#pragma once

#include <cuda_runtime_api.h>

namespace slidestream::test {

/// Launches a kernel that keeps one multiprocessor of the current device busy for that long.
void launch_spin(double milliseconds, cudaStream_t stream);

}  // namespace slidestream::test
