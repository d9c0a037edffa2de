#pragma once

namespace slidestream {

/// Notes that the calling process uses CUDA. \throws CudaError where one that it was forked from did before, for then
/// it can't
void require_own_process();

}  // namespace slidestream
