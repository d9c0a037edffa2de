#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

/// \file
/// From luminance to spectral statistics on the CPU: smoothing, windows, DFT, values, histogram, moments.

namespace slidestream {

/// Part of a slide's luminance in host memory, 8 bits. Covers columns [x0, x0 + width) and rows [y0, y0 + height) of an
/// image of image_width x image_height; where it ends short of the image there are at least `smoothing_radius` pixels
/// beyond every window asked for, and mirroring happens at the image's edges alone.
struct LuminancePlane {
  const std::uint8_t* data = nullptr;  ///< pixel (x0, y0)
  std::ptrdiff_t pitch = 0;            ///< bytes from a row to the next
  std::int64_t x0 = 0;
  std::int64_t y0 = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t image_width = 0;
  std::int64_t image_height = 0;
};

/// A rectangle of windows by index: window (wx, wy) begins at pixel (wx * stride, wy * stride) of the image.
struct WindowBlock {
  std::int64_t first_column = 0;
  std::int64_t columns = 0;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

/// Where per-window mean and standard deviation go: `values[(wy * columns + wx) * 2 + {0, 1}]`; null: nowhere.
struct MapView {
  float* values = nullptr;
  std::int64_t columns = 0;

  float* cell(std::int64_t column, std::int64_t row) const noexcept {
    return values == nullptr ? nullptr : values + (row * columns + column) * 2;
  }
};

/// Computes the statistics of blocks of windows. Immutable, shared by all threads; what a window gives depends on its
/// pixels alone, never on the block or the plane that it came in: the bits are the same however the work is cut.
class SpectrumEngine {
 public:
  /// One thread's buffers, made once.
  class Workspace {
   public:
    virtual ~Workspace() = default;
  };

  virtual ~SpectrumEngine() = default;
  virtual const char* name() const noexcept = 0;  ///< for logs and benchmarks, such as "highway-256 AVX3"
  virtual std::unique_ptr<Workspace> make_workspace() const = 0;
  /// Window columns that a task should take for the best speed.
  virtual std::int64_t columns_per_task() const noexcept = 0;
  /// Adds the block's windows to `sums` (whose histogram has `bins` entries). Doesn't allocate, but for what KISS FFT
  /// takes (make_kiss_dft_2d).
  virtual void run(SpectrumSums& sums, const MapView& map, const LuminancePlane& plane, const WindowBlock& block,
                   Workspace& workspace) const = 0;
};

enum class EngineKind {
  automatic,  ///< the fastest that takes this configuration
  plain,      ///< the plain way: KISS FFT for every window
  highway,    ///< vectorised, for windows of 16 to 1024 that are powers of two (throws ConfigError for others)
};

/// Makes the engine for a configuration.
std::unique_ptr<SpectrumEngine> make_spectrum_engine(const AnalysisConfig& config,
                                                     EngineKind kind = EngineKind::automatic);

}  // namespace slidestream
