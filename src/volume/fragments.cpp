#include "volume/fragments.hpp"

#include <algorithm>
#include <stdexcept>

namespace slidestream::volume {

FragmentGrid::FragmentGrid(const Extent& volume, const Extent& fragment, const Extent& grid)
    : volume_(volume), fragment_(fragment) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (volume[i] < 1 || fragment[i] < 1 || grid[i] < 1) {
      throw std::invalid_argument("volumes, fragments and grids have one sample along an axis, or more");
    }
    axes_[i] = {volume[i], fragment[i], grid[i]};
  }
}

std::size_t FragmentGrid::count() const noexcept {
  return static_cast<std::size_t>(axes_[0].count * axes_[1].count * axes_[2].count);
}

Extent FragmentGrid::begin(std::size_t fragment) const noexcept {
  const auto number = static_cast<std::int64_t>(fragment);
  const std::int64_t across = axes_[2].count;
  const std::int64_t down = axes_[1].count;
  return {axes_[0].begin(number / (across * down)), axes_[1].begin(number / across % down),
          axes_[2].begin(number % across)};
}

void FragmentGrid::cut(std::span<float> to, std::span<const float> volume, std::size_t fragment, float fill) const {
  if (to.size() != static_cast<std::size_t>(count_of(fragment_)) ||
      volume.size() != static_cast<std::size_t>(count_of(volume_))) {
    throw std::invalid_argument("a fragment is cut from a whole volume, into memory of its size");
  }
  const Extent from = begin(fragment);
  const InsideRange z_range = inside(from[0], fragment_[0], volume_[0]);
  const InsideRange y_range = inside(from[1], fragment_[1], volume_[1]);
  const InsideRange x_range = inside(from[2], fragment_[2], volume_[2]);
  std::ranges::fill(to, fill);
  for (std::int64_t z = z_range.first; z < z_range.first + z_range.count; ++z) {
    for (std::int64_t y = y_range.first; y < y_range.first + y_range.count; ++y) {
      const std::int64_t row = ((from[0] + z) * volume_[1] + from[1] + y) * volume_[2] + from[2] + x_range.first;
      std::copy_n(volume.data() + row, x_range.count,
                  to.data() + (z * fragment_[1] + y) * fragment_[2] + x_range.first);
    }
  }
}

}  // namespace slidestream::volume
