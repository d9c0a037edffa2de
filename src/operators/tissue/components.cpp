#include "operators/tissue/components.hpp"

#include <algorithm>

namespace slidestream::operators {
namespace {

/// The run that stands for a run's component: the first one.
std::size_t root_of(std::vector<MaskRun>& runs, std::size_t i) {
  while (runs[i].component != i) {
    runs[i].component = runs[runs[i].component].component;
    i = runs[i].component;
  }
  return i;
}

void unite(std::vector<MaskRun>& runs, std::size_t i, std::size_t j) {
  i = root_of(runs, i);
  j = root_of(runs, j);
  runs[std::max(i, j)].component = std::min(i, j);
}

/// Unites the runs of a row, [begin, end), with those of the row above, [above, begin).
void unite_rows(std::vector<MaskRun>& runs, std::size_t above, std::size_t begin, std::size_t end, std::int64_t reach) {
  const std::size_t last_above = begin;
  while (above < last_above && begin < end) {
    if (runs[above].begin < runs[begin].end + reach && runs[begin].begin < runs[above].end + reach) {
      unite(runs, above, begin);
    }
    if (runs[above].end < runs[begin].end) {
      ++above;
    } else {
      ++begin;
    }
  }
}

}  // namespace

Components find_components(const Mask& mask, std::uint8_t value, Connectivity connectivity) {
  Components found;
  std::vector<MaskRun>& runs = found.runs;
  const std::int64_t reach = connectivity == Connectivity::eight ? 1 : 0;
  std::size_t above = 0;
  for (std::int64_t y = 0; y < mask.size.height; ++y) {
    const std::size_t begin = runs.size();
    const auto row = mask.row(y);
    for (auto at = row.begin();;) {
      at = std::find(at, row.end(), value);
      if (at == row.end()) break;
      const auto end = std::find_if(at, row.end(), [&](std::uint8_t pixel) { return pixel != value; });
      runs.push_back({y, at - row.begin(), end - row.begin(), runs.size()});
      at = end;
    }
    unite_rows(runs, above, begin, runs.size(), reach);
    above = begin;
  }
  // Roots come before the rest of their components.
  for (std::size_t i = 0; i < runs.size(); ++i) {
    MaskRun& run = runs[i];
    if (run.component == i) {
      run.component = found.list.size();
      found.list.emplace_back();
    } else {
      run.component = runs[run.component].component;
    }
    Component& component = found.list[run.component];
    component.pixels += run.end - run.begin;
    component.at_border = component.at_border || run.y == 0 || run.y == mask.size.height - 1 || run.begin == 0 ||
                          run.end == mask.size.width;
  }
  return found;
}

}  // namespace slidestream::operators
