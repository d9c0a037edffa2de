#include "operators/tissue/components.hpp"

#include <algorithm>
#include <deque>

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

/// A part of a component: what a run begins that touches none above it.
struct Part {
  std::uint32_t stands_for = 0;  ///< itself, or an earlier part of the same component
  std::uint32_t pixels = 0;      ///< and `border`
};
constexpr std::uint32_t border = std::uint32_t{1} << 31;

/// Without copies as it grows.
using Parts = std::deque<Part>;

void add(Part& to, std::uint32_t pixels) { to.pixels = (to.pixels + (pixels & ~border)) | (pixels & border); }

std::uint32_t root_of(Parts& parts, std::uint32_t i) {
  while (parts[i].stands_for != i) {
    parts[i].stands_for = parts[parts[i].stands_for].stands_for;
    i = parts[i].stands_for;
  }
  return i;
}

struct PartRun {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint32_t part = 0;
};

/// Calls `take(y, run)` for each run in row-major order. Its part is that of the first run above that it touches, else
/// the next number: the same in each scan. `meet` is called with that part and those of the others above. The row that
/// `take` gets may be changed.
template <class Meet, class Take>
void scan_parts(const Mask& mask, std::uint8_t value, Connectivity connectivity, const Meet& meet, const Take& take) {
  const std::int64_t reach = connectivity == Connectivity::eight ? 1 : 0;
  std::uint32_t next = 0;
  std::vector<PartRun> above;
  std::vector<PartRun> here;
  for (std::int64_t y = 0; y < mask.size.height; ++y) {
    const auto row = mask.row(y);
    here.clear();
    for (auto at = std::find(row.begin(), row.end(), value); at != row.end();) {
      const auto end = std::find_if(at, row.end(), [&](std::uint8_t pixel) { return pixel != value; });
      here.push_back({at - row.begin(), end - row.begin(), 0});
      at = std::find(end, row.end(), value);
    }
    std::size_t first = 0;
    for (PartRun& run : here) {
      while (first < above.size() && above[first].end + reach <= run.begin) ++first;
      std::size_t i = first;
      const auto touches = [&] { return i < above.size() && above[i].begin < run.end + reach; };
      run.part = touches() ? above[i].part : next++;
      for (; touches(); ++i) meet(run.part, above[i].part);
      take(y, run);
    }
    above.swap(here);
  }
}

}  // namespace

std::size_t count_runs(const Mask& mask, std::uint8_t value) {
  std::size_t runs = 0;
  for (std::int64_t y = 0; y < mask.size.height; ++y) {
    bool was = false;
    for (const std::uint8_t pixel : mask.row(y)) {
      const bool is = pixel == value;
      runs += is && !was ? 1 : 0;
      was = is;
    }
  }
  return runs;
}

void flip_components(Mask& mask, std::uint8_t value, Connectivity connectivity,
                     const std::function<bool(const Component&)>& chosen) {
  Parts parts;
  const auto unite = [&](std::uint32_t i, std::uint32_t j) {
    i = root_of(parts, i);
    j = root_of(parts, j);
    parts[std::max(i, j)].stands_for = std::min(i, j);
  };
  scan_parts(mask, value, connectivity, unite, [&](std::int64_t y, const PartRun& run) {
    if (run.part == parts.size()) parts.push_back({run.part});
    const bool touches = y == 0 || y == mask.size.height - 1 || run.begin == 0 || run.end == mask.size.width;
    add(parts[run.part], static_cast<std::uint32_t>(run.end - run.begin) | (touches ? border : 0));
  });
  // A root comes before what it stands for.
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const std::uint32_t root = root_of(parts, i);
    if (root != i) add(parts[root], parts[i].pixels);
  }
  // From here on a root's pixels say whether it is chosen.
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    if (parts[i].stands_for != i) continue;
    const std::uint32_t pixels = parts[i].pixels;
    parts[i].pixels = chosen({std::int64_t{pixels & ~border}, (pixels & border) != 0}) ? 1 : 0;
  }
  const auto other = static_cast<std::uint8_t>(1 - value);
  scan_parts(
      mask, value, connectivity, [](std::uint32_t, std::uint32_t) {},
      [&](std::int64_t y, const PartRun& run) {
        if (parts[root_of(parts, run.part)].pixels == 0) return;
        const auto row = mask.row(y);
        std::fill(row.begin() + run.begin, row.begin() + run.end, other);
      });
}

Components find_components(const Mask& mask, std::uint8_t value, Connectivity connectivity) {
  Components found;
  std::vector<MaskRun>& runs = found.runs;
  runs.reserve(count_runs(mask, value));
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
