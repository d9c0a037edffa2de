#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cuda/spectrum/scratch_layout.hpp"
#include "cuda/spectrum/smoothed_plane.hpp"

/// \file
/// The memory that the cuFFT engine needs, in plain C++: so that most of it can be told for a GPU that isn't there.

namespace slidestream::cuda {

/// Windows transformed at a time: enough to fill a GPU, and little enough to stay partly in its cache. How many that is
/// depends on their size alone, so that all windows of all blocks go through the same plan.
inline int cufft_batch(int window) {
  constexpr std::int64_t samples = std::int64_t{1} << 26;
  constexpr std::int64_t most_windows = 1 << 16;
  return static_cast<int>(std::clamp<std::int64_t>(samples / (std::int64_t{window} * window), 1, most_windows));
}

/// What only the device and its library can tell.
struct CufftNeeds {
  std::size_t partial_doubles = 0;  ///< of the binning of a batch
  std::size_t work_bytes = 0;       ///< of the plan
};

/// The engine's scratch for a block of windows. Over a null base it measures.
struct CufftScratch {
  struct Complex {
    float real;
    float imaginary;
  };

  CufftScratch(const WindowBlock& block, int window, int stride, const CufftNeeds& needs, std::byte* base = nullptr) {
    ScratchLayout layout(base);
    const auto batch = static_cast<std::size_t>(cufft_batch(window));
    const auto side = static_cast<std::size_t>(window);
    smoothed = smoothed_plane_of(block, window, stride);
    smoothed.data = layout.take<float>(smoothed.floats());
    samples = layout.take<float>(batch * side * side);
    spectra = layout.take<Complex>(batch * side * (side / 2 + 1));
    partials = layout.take<double>(needs.partial_doubles);
    work = layout.take<std::byte>(needs.work_bytes);
    bytes = layout.bytes();
  }

  SmoothedPlane smoothed;
  float* samples = nullptr;
  Complex* spectra = nullptr;
  double* partials = nullptr;
  std::byte* work = nullptr;
  std::size_t bytes = 0;
};

}  // namespace slidestream::cuda
