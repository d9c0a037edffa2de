#pragma once

#include <cuda_runtime_api.h>

/// \file
/// The one way to call the CUDA runtime: `SLIDESTREAM_CUDA(cudaMemcpyAsync(...))`.

namespace slidestream::runtime::cuda {

/// \throws CudaError "CUDA: WHAT (NAME) from EXPRESSION, FILE:LINE" unless `code` is success.
void check(cudaError_t code, const char* expression, const char* file, int line);

/// For destructors: a failure is passed over.
void check_noexcept(cudaError_t code, const char* expression, const char* file, int line) noexcept;

}  // namespace slidestream::runtime::cuda

/// Throws CudaError when the call fails.
#define SLIDESTREAM_CUDA(expression) ::slidestream::runtime::cuda::check((expression), #expression, __FILE__, __LINE__)
/// The same where throwing isn't possible.
#define SLIDESTREAM_CUDA_NOEXCEPT(expression) \
  ::slidestream::runtime::cuda::check_noexcept((expression), #expression, __FILE__, __LINE__)
/// Stands after every kernel launch.
#define SLIDESTREAM_CUDA_LAUNCHED() SLIDESTREAM_CUDA(cudaGetLastError())
