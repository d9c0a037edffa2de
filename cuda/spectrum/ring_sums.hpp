#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include <slidestream/config.hpp>

/// \file
/// The radial profile of spectra in device memory.

namespace slidestream::cuda {

/// Adds the values of `windows` spectra, [windows][window][window / 2 + 1] complex numbers, to their rings' sums: whole
/// numbers, each value times 2^bits rounded. Mirror images count as well. `rings` is window / 2 + 1.
void add_rings(std::int64_t* sums, const float2* spectra, int windows, const AnalysisConfig& config, int bits,
               cudaStream_t stream);

}  // namespace slidestream::cuda
