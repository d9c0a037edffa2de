#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/encode/encode_task.hpp"

/// \file
/// The encoder's kernels.

namespace slidestream::cuda {

/// Lets the kernels have the shared memory that they want, on the current device. \throws CudaError.
void prepare_encode();

/// Encodes the task's tiles. Its counters are zero. \throws CudaError.
void launch_encode(const EncodeTask& task, std::uint32_t multiprocessors, cudaStream_t stream);

/// Sums the tiles' lengths, stuffs their bits and brings them to where they belong. \throws CudaError.
void launch_pack(const EncodeTask& task, cudaStream_t stream);

}  // namespace slidestream::cuda
