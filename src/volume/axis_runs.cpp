#include "volume/axis_runs.hpp"

#include <algorithm>

namespace slidestream::volume {

std::vector<AxisRun> runs_of(const FragmentAxis& axis) {
  std::vector<AxisRun> runs;
  AxisRun run;
  while (run.end < axis.size) {
    run.begin = run.end;
    while (run.last < axis.count && axis.begin(run.last) <= run.begin) ++run.last;
    while (run.first < run.last && axis.begin(run.first) + axis.fragment <= run.begin) ++run.first;
    run.end = run.last < axis.count ? axis.begin(run.last) : axis.size;
    if (run.first < run.last) run.end = std::min(run.end, axis.begin(run.first) + axis.fragment);
    runs.push_back(run);
  }
  return runs;
}

GridRuns runs_of(const FragmentGrid& grid) {
  return {runs_of(grid.axis(0)), runs_of(grid.axis(1)), runs_of(grid.axis(2))};
}

}  // namespace slidestream::volume
