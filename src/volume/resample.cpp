#include "volume/resample.hpp"

#include <slidestream/error.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/toml_text.hpp"

namespace slidestream::volume {
namespace {

constexpr double most_samples = 32768.0;
constexpr std::array<const char*, 3> axis_names = {"z", "y", "x"};

bool is_length(double value) { return std::isfinite(value) && value > 0.0; }

}  // namespace

Resampling::Resampling(const Extent& scan, const Spacing& own, const Spacing& wanted) : scan_(scan) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (!is_length(own[axis])) {
      throw Error("its header says no length of voxels along " + std::string(axis_names[axis]) +
                  ", which volume.spacing wants");
    }
    to_grid_[axis] = own[axis] / wanted[axis];
    to_scan_[axis] = wanted[axis] / own[axis];
    const double samples = std::floor(static_cast<double>(scan[axis] - 1) * to_grid_[axis] + 0.5) + 1.0;
    if (!(samples <= most_samples) || !is_length(to_scan_[axis])) {
      throw Error("volume.spacing would make more than 32,768 samples along " + std::string(axis_names[axis]) +
                  " of its " + std::to_string(scan[axis]) + ", which are " + to_toml_number(own[axis]) + " mm apart");
    }
    grid_[axis] = static_cast<std::int64_t>(samples);
  }
}

Resampling::Between Resampling::between(std::size_t axis, std::int64_t sample) const noexcept {
  const std::int64_t last = scan_[axis] - 1;
  const double at = std::min(static_cast<double>(sample) * to_scan_[axis], static_cast<double>(last));
  Between between;
  between.low = static_cast<std::int64_t>(std::floor(at));
  between.high = std::min(between.low + 1, last);
  between.of_high = at - std::floor(at);
  between.of_low = 1.0 - between.of_high;
  return between;
}

void Resampling::cut(std::span<float> to, std::span<const float> scan, const FragmentGrid& fragments,
                     std::size_t fragment, float fill) const {
  const Extent& size = fragments.fragment();
  if (to.size() != static_cast<std::size_t>(count_of(size)) ||
      scan.size() != static_cast<std::size_t>(count_of(scan_)) || fragments.volume() != grid_) {
    throw std::invalid_argument("a fragment is cut from a whole scan, into memory of its size");
  }
  const Extent from = fragments.begin(fragment);
  std::array<InsideRange, 3> ranges;
  for (std::size_t axis = 0; axis < 3; ++axis) ranges[axis] = inside(from[axis], size[axis], grid_[axis]);
  std::ranges::fill(to, fill);
  // Without a weight the upper sample counts as 0 with its sign, as of a finite one: 0 x NaN would be NaN.
  const auto mixed = [](const Between& by, double low, double high) {
    return low * by.of_low + (by.of_high == 0.0 ? std::copysign(0.0, high) : high * by.of_high);
  };
  const auto at = [&](std::size_t axis, std::int64_t sample) { return between(axis, from[axis] + sample); };
  std::vector<Between> columns;
  for (std::int64_t i = 0; i < ranges[2].count; ++i) columns.push_back(at(2, ranges[2].first + i));
  const auto row_of = [&](std::int64_t z, std::int64_t y) { return scan.data() + (z * scan_[1] + y) * scan_[2]; };
  for (std::int64_t z = ranges[0].first; z < ranges[0].first + ranges[0].count; ++z) {
    const Between in_z = at(0, z);
    for (std::int64_t y = ranges[1].first; y < ranges[1].first + ranges[1].count; ++y) {
      const Between in_y = at(1, y);
      const std::array<const float*, 4> rows = {row_of(in_z.low, in_y.low), row_of(in_z.low, in_y.high),
                                                row_of(in_z.high, in_y.low), row_of(in_z.high, in_y.high)};
      float* made = to.data() + (z * size[1] + y) * size[2] + ranges[2].first;
      for (const Between& in_x : columns) {
        std::array<double, 4> along_x;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          along_x[i] = mixed(in_x, static_cast<double>(rows[i][in_x.low]), static_cast<double>(rows[i][in_x.high]));
        }
        *made++ =
            static_cast<float>(mixed(in_z, mixed(in_y, along_x[0], along_x[1]), mixed(in_y, along_x[2], along_x[3])));
      }
    }
  }
}

}  // namespace slidestream::volume
