#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/pyramid/band_reducer.hpp"

/// \file
/// The smaller levels of an image that passes by in device memory, band by band.

namespace slidestream::cuda {

/// One an image, on the device that was current when it was made. Used by one thread at a time, with one stream.
class DevicePyramid {
 public:
  /// Device memory that it needs for bands of up to `most_rows` rows.
  static std::size_t device_bytes(const PyramidLayout& layout, const PixelFormat& format, std::int64_t most_rows) {
    return BandReducer::memory_bytes(layout, format, most_rows);
  }

  /// \param device  aligned to 256 bytes; stays the pyramid's as long as it lives. \throws as BandReducer.
  DevicePyramid(const PyramidLayout& layout, const PixelFormat& format, std::int64_t most_rows,
                std::span<std::byte> device)
      : reducer_(layout, format, most_rows, device), channels_(format.channels) {}

  /// Puts on `stream` what makes the rows of all levels that the band completes. Doesn't allocate device memory,
  /// synchronise, or touch other streams. Arguments as BandReducer::add. \throws CudaError, or as BandReducer::add.
  void enqueue(const ConstPixelView<MemorySpace::device>& band, std::span<const PixelView<MemorySpace::device>> levels,
               cudaStream_t stream);

 private:
  BandReducer reducer_;
  int channels_;
};

}  // namespace slidestream::cuda
