#pragma once

#include "gpu_runs.hpp"

namespace slidestream::bench {

/// Wall time of the program `pipeline`, which stands beside this one or in the folder above, over few slides: from its
/// start to its end. This process uses the GPU meanwhile, so the driver has it awake: alone the program takes longer.
/// \throws Error when the program isn't there or fails.
void bench_startup(GpuBench& bench);

/// What `gpu_bench --context` does: has the driver make a context, and nothing else. \throws CudaError.
void make_context_only();

}  // namespace slidestream::bench
