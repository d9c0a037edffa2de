#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>

#include "cuda/colour/colour_program.hpp"

namespace slidestream::cuda {

/// The conversion that a stream's kernels use, in memory of its own. Slides of a scanner mostly have one profile, so
/// that it stays from one to the next. Used by one thread at a time.
class LoadedColours {
 public:
  /// Memory of the current device and of the host, as `ConversionMemory` has it. Both stay as long as this lives.
  /// \throws std::length_error when either is too small
  LoadedColours(std::span<std::byte> device, std::span<std::byte> pinned);

  /// For kernels behind it on `stream`. The stream has passed what this put on it before. Doesn't wait.
  /// \param conversion  null: colours stay as they are; else `is_for_devices`
  /// \param every  what all colours become is wanted, by a matrix, too
  /// \throws CudaError
  DeviceColours load(std::shared_ptr<const ColourConversion> conversion, bool every, cudaStream_t stream);

 private:
  std::span<std::byte> device_;
  std::span<std::byte> pinned_;
  std::shared_ptr<const ColourConversion> loaded_;  ///< null: none
  DeviceColours colours_;
};

}  // namespace slidestream::cuda
