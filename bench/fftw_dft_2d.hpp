#pragma once

#include <memory>

#include "spectrum/real_dft_2d.hpp"

namespace slidestream::bench {

/// FFTW in float32 for squares of side `n`, planned with FFTW_ESTIMATE: what the library's own transforms are measured
/// against. FFTW is under the GPL, so nothing but benchmarks links it.
std::unique_ptr<RealDft2d> make_fftw_dft_2d(int n);

}  // namespace slidestream::bench
