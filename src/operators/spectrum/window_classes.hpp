#pragma once

#include <cstdint>
#include <vector>

#include <slidestream/operator.hpp>

#include "image/mask.hpp"

namespace slidestream::operators {

/// Which of a slide's windows are tissue. Thread-safe.
class WindowClasses final : public SlideParameters {
 public:
  /// \param level scale of the level that the windows are of
  /// \param share of a window that must be tissue, 0 to 1
  WindowClasses(const Mask& mask, const GridScale& level, const Footprint& windows, double share)
      : mask_(mask), level_(level), windows_(windows), share_(share) {}

  bool is_tissue(std::int64_t column, std::int64_t row) const noexcept {
    const Rect window = {column * windows_.step.width, row * windows_.step.height, windows_.window.width,
                         windows_.window.height};
    return mask_.is_tissue(window, level_, share_);
  }

 private:
  MaskTable mask_;
  GridScale level_;
  Footprint windows_;
  double share_;
};

/// Cuts a block of windows into rectangles of one class each, as large as its rows allow: rows with the same classes
/// one below the other stay together.
class ClassBlocks {
 public:
  /// Calls `visit(block, tissue)` for each rectangle. Doesn't allocate once warm.
  template <class Visit>
  void for_each(const WindowClasses& classes, const OutputBlock& block, Visit visit) {
    open_.clear();
    for (std::int64_t row = block.row; row < block.row + block.rows; ++row) {
      find_runs(classes, block, row);
      if (same_runs()) {
        for (Run& run : open_) ++run.block.rows;
        continue;
      }
      for (const Run& run : open_) visit(run.block, run.tissue);
      open_.swap(runs_);
    }
    for (const Run& run : open_) visit(run.block, run.tissue);
  }

 private:
  struct Run {
    OutputBlock block;
    bool tissue = false;
  };

  void find_runs(const WindowClasses& classes, const OutputBlock& block, std::int64_t row);
  bool same_runs() const noexcept;

  std::vector<Run> open_;  ///< that reach the row before
  std::vector<Run> runs_;  ///< of one row
};

}  // namespace slidestream::operators
