#pragma once

/// \file
/// Marks what is compiled for the host and for the device from one source.

#if defined(__CUDACC__)
#define SLIDESTREAM_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SLIDESTREAM_HOST_DEVICE inline
#endif
