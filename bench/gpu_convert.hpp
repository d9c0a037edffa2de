#pragma once

#include "gpu_runs.hpp"

namespace slidestream::bench {

/// Slides to image pyramids, from the file to the last write: put the bench's folder on a RAM disk.
void bench_convert(GpuBench& bench);

}  // namespace slidestream::bench
