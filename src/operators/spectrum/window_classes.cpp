#include "operators/spectrum/window_classes.hpp"

#include <algorithm>

namespace slidestream::operators {

void ClassBlocks::find_runs(const WindowClasses& classes, const OutputBlock& block, std::int64_t row) {
  runs_.clear();
  for (std::int64_t column = block.column; column < block.column + block.columns; ++column) {
    const bool tissue = classes.is_tissue(column, row);
    if (runs_.empty() || runs_.back().tissue != tissue) {
      runs_.push_back({{column, 1, row, 1}, tissue});
    } else {
      ++runs_.back().block.columns;
    }
  }
}

bool ClassBlocks::same_runs() const noexcept {
  // Where runs have the same ends and begin with the same class, all have the same classes.
  return std::ranges::equal(open_, runs_, [](const Run& a, const Run& b) {
    return a.tissue == b.tissue && a.block.columns == b.block.columns;
  });
}

}  // namespace slidestream::operators
