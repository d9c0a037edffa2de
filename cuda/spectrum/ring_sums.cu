#include "cuda/spectrum/ring_sums.hpp"

#include <algorithm>
#include <cmath>

#include "cuda/spectrum/ring_sums.cuh"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

void add_rings(std::int64_t* sums, const float2* spectra, int windows, const AnalysisConfig& config, int bits,
               cudaStream_t stream) {
  const RingTask task = {spectra, config.window, windows, config.window / 2 + 1, std::ldexp(1.0F, bits)};
  const auto launch = [&](auto kernel) {
    const std::size_t shared = sizeof(unsigned) * RingShape::pieces * static_cast<std::size_t>(task.rings);
    const auto blocks = static_cast<unsigned>(std::min(windows, RingShape::most_blocks));
    kernel<<<blocks, RingShape::threads, shared, stream>>>(reinterpret_cast<unsigned long long*>(sums), task);
  };
  switch (config.value) {
    case ValueKind::log1p_db:
      launch(add_to_rings<ValueKind::log1p_db>);
      break;
    case ValueKind::db:
      launch(add_to_rings<ValueKind::db>);
      break;
    case ValueKind::linear:
      launch(add_to_rings<ValueKind::linear>);
      break;
  }
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
