#pragma once

#include "gpu_runs.hpp"

namespace slidestream::bench {

/// Slides to image pyramids, from the file to the last write. One JPEG pyramid is written where the bench's folder is,
/// and what is larger to a RAM disk, where there is one with 48 GiB left.
void bench_convert(GpuBench& bench);

}  // namespace slidestream::bench
