#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// \file
/// Labels of what networks give, on a device.

namespace slidestream::cuda {

/// What stands for a voxel with a score that isn't finite. More channels than 65,535 aren't taken.
inline constexpr std::uint16_t no_label = 65535;

/// Puts on `stream` the choice of the channel with the largest score, the lowest of equals, for each voxel; all in
/// device memory. Allocates nothing. \param labels  voxels, written. \param scores  channels x voxels. \param channels
/// 1 to 65,535. \throws CudaError.
void enqueue_labels(std::uint16_t* labels, const float* scores, std::size_t channels, std::size_t voxels,
                    cudaStream_t stream);
/// The same of the bits of half floats.
void enqueue_labels(std::uint16_t* labels, const std::uint16_t* scores, std::size_t channels, std::size_t voxels,
                    cudaStream_t stream);

}  // namespace slidestream::cuda
