#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <slidestream/config.hpp>

#include "spectrum/engine.hpp"

/// \file
/// From luminance to spectral statistics on one GPU: smoothing, windows, DFT, values, histogram, moments.

namespace slidestream::cuda {

/// Part of a slide's luminance in device memory, 8 bits; as `LuminancePlane` for everything else.
struct DevicePlane {
  const std::uint8_t* data = nullptr;  ///< pixel (x0, y0)
  std::ptrdiff_t pitch = 0;            ///< bytes from a row to the next, a multiple of 64
  std::int64_t x0 = 0;
  std::int64_t y0 = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t image_width = 0;
  std::int64_t image_height = 0;
};

/// Where a block's results go, all in device memory and overwritten (not added to).
struct DeviceSums {
  std::uint64_t* histogram = nullptr;  ///< `bins` counts; a half-spectrum coefficient counts for itself and its mirror
  std::uint64_t* clipped = nullptr;    ///< one count
  /// Per window of the block, row by row: sum of its N x N values and of their squares (dB or |F|). The host rounds
  /// them to fixed point, as the CPU's engines do.
  double* moments = nullptr;
  /// Of the statistics that were asked for, as `SpectrumSums::counters` but in 64 bits. What follows from the moments,
  /// such as the number and the sums of windows that are tissue, is left 0. Null: none were asked for.
  std::int64_t* counters = nullptr;
  /// Read, where windows are split: per window of the block, row by row, 1 where it is tissue, else 0.
  const std::uint8_t* tissue = nullptr;
};

/// Computes the statistics of blocks of windows on the device that was current when it was made. What a window gives
/// depends on its pixels alone, never on the block or the plane that it came in: the bits are the same however the work
/// is cut. Made once per compute stream; used by one thread at a time.
class WindowEngine {
 public:
  virtual ~WindowEngine() = default;
  virtual const char* name() const noexcept = 0;  ///< for logs and benchmarks, such as "cufft-256"
  /// Device memory that `enqueue` needs for a block of windows in a plane of at most `width` x `height` pixels.
  virtual std::size_t scratch_bytes(std::int64_t width, std::int64_t height, const WindowBlock& block) const = 0;
  /// Puts the whole of a block's work on `stream`. Doesn't allocate, synchronise, or touch other streams. `scratch` is
  /// device memory, aligned to 256 bytes, and belongs to this work until the stream is past it.
  /// \throws CudaError when a launch fails.
  virtual void enqueue(const DeviceSums& sums, const DevicePlane& plane, const WindowBlock& block,
                       std::span<std::byte> scratch, cudaStream_t stream) = 0;
};

enum class WindowEngineKind {
  automatic,  ///< the fastest that takes this configuration on this device
  cufft,      ///< smoothing, gather, cuFFT and binning, each a kernel: every window and stride
  fused,      ///< one kernel from the smoothed plane on; window 256, stride 128 (throws ConfigError for others)
};

/// Makes an engine for the current device; plans transforms.
/// \throws ConfigError when the configuration can't be run there (cuFFT isn't installed, for example); CudaError.
std::unique_ptr<WindowEngine> make_window_engine(const AnalysisConfig& config,
                                                 WindowEngineKind kind = WindowEngineKind::automatic);

}  // namespace slidestream::cuda
