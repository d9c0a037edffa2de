#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "spectrum/aligned_buffer.hpp"
#include "spectrum/engine.hpp"
#include "spectrum/plain_kernels.hpp"
#include "spectrum/smoothing.hpp"

/// \file
/// Smoothed rows of window columns that stand side by side, for windows and strides of any size.

namespace slidestream {

/// One thread's buffers of a WindowBand.
struct BandBuffers {
  AlignedBuffer<float> rows;       ///< the newest smoothed rows, as many as a window has; row y stands at y % window
  AlignedBuffer<float> line;       ///< one row smoothed vertically, with mirrored ends
  std::vector<const float*> from;  ///< the rows of one window row, top to bottom
};

/// Walks down the windows of a block, some columns side by side at a time, so that each pixel that they share is
/// smoothed once.
class WindowBand {
 public:
  /// Bands are at most `widest` pixels wide, or a window. Smoothed pixels are `gain` times the Gaussian's mean less
  /// `luminance_offset`.
  WindowBand(const AnalysisConfig& config, std::int64_t widest, float gain);

  /// Window columns side by side at most.
  std::int64_t columns() const noexcept { return columns_; }
  /// Pixels from a band's left to its right, at most.
  std::int64_t width() const noexcept { return (columns_ - 1) * stride_ + window_; }
  BandBuffers make_buffers() const;

  /// Calls `visit(windows, rows)` for every row of windows of every band of a block: `rows[y]` is row y of these
  /// windows, and begins with the pixels of the first. There are `row_slack` floats beyond a row's end.
  template <class Visit>
  void walk(const LuminancePlane& plane, const WindowBlock& block, BandBuffers& buffers, Visit visit) const {
    for (std::int64_t done = 0; done < block.columns; done += columns_) {
      WindowBlock windows = block;
      windows.first_column += done;
      windows.columns = std::min(columns_, block.columns - done);
      windows.rows = 1;
      std::int64_t next_row = 0;
      for (; windows.first_row < block.first_row + block.rows; ++windows.first_row) {
        const std::int64_t top = windows.first_row * stride_;
        for (next_row = std::max(next_row, top); next_row < top + window_; ++next_row) {
          smooth_row(row_of(buffers, next_row), plane, windows, next_row, buffers.line.data());
        }
        for (std::int64_t y = 0; y < window_; ++y) {
          buffers.from[static_cast<std::size_t>(y)] = row_of(buffers, top + y);
        }
        visit(windows, buffers.from.data());
      }
    }
  }

 private:
  float* row_of(BandBuffers& buffers, std::int64_t y) const {
    return buffers.rows.data() + static_cast<std::size_t>(y % window_) * pitch_;
  }
  void smooth_row(float* out, const LuminancePlane& plane, const WindowBlock& windows, std::int64_t y,
                  float* scratch) const;

  std::int64_t window_;
  std::int64_t stride_;
  std::int64_t radius_;
  std::int64_t columns_;
  std::size_t pitch_;  ///< floats from a smoothed row to the next
  PlainKernels kernels_ = plain_kernels();
  std::array<float, max_smoothing_radius + 1> down_{};
  std::array<float, max_smoothing_radius + 1> along_{};
};

}  // namespace slidestream
