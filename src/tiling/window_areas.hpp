#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <slidestream/image.hpp>
#include <span>

#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "tiling/window_decoder.hpp"

namespace slidestream {

/// Windows whose pixels each stand for an area of the level's. The level's pixels are decoded into memory of its own,
/// as many as there is room for, and the current device makes the windows' of them, `AreaResampler`'s to the bit. Used
/// by one thread at a time.
class WindowAreas {
 public:
  /// Makes windows of the level's own pixels on the stream. \returns how many tiles the CPU decoded though the device
  /// was to.
  using Decode = std::function<std::size_t(const WindowTask&)>;

  /// Takes the memory: `source_bytes` for the level's pixels. \throws CudaError
  WindowAreas(std::size_t source_bytes, cudaStream_t stream);

  /// \param wait  returns when the stream has done what it was given. \returns as `Decode`. \throws SlideError,
  /// CudaError
  std::size_t run(const WindowTask& task, const Decode& decode, const std::function<void()>& wait);

  /// Device memory that it takes.
  static std::size_t device_bytes(std::size_t source_bytes);

 private:
  class Batch;

  cudaStream_t stream_;
  runtime::cuda::DeviceArena device_;
  runtime::HostMemory host_;
  runtime::cuda::PinnedRange pinned_;
  std::span<std::byte> sources_;  ///< windows of the level's pixels
  std::span<std::byte> pieces_;   ///< what becomes of them
};

}  // namespace slidestream
