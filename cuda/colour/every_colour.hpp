#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/colour/colour_program.hpp"

namespace slidestream::cuda {

/// Writes what each of the 2^24 colours becomes to `every`, `DeviceColours::every_count` words, on `stream`. Both are
/// device memory. \throws CudaError
void make_every_colour(const ColourProgram* program, std::uint32_t* every, cudaStream_t stream);

}  // namespace slidestream::cuda
