#include "report/volume_cuts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "volume/nifti_file.hpp"

namespace slidestream::report {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_voxels = std::int64_t{1} << 28;
constexpr int gap = 2;  ///< pixels between cuts

/// Three axes: z, y, x.
using Sides = std::array<double, 3>;

struct Samples {
  explicit Samples(const fs::path& path) {
    volume::NiftiFile file(path.string());
    size = {file.header().size[2], file.header().size[1], file.header().size[0]};
    if (file.header().voxels() > most_voxels) {
      throw SlideError(path.string() + ": it has more than 2^28 voxels, too many for a picture");
    }
    spacing = file.header().geometry.spacing_mm();
    const bool known = std::ranges::all_of(spacing, [](double side) { return std::isfinite(side) && side > 0.0; });
    if (!known) spacing = {1.0, 1.0, 1.0};
    values.resize(static_cast<std::size_t>(file.header().voxels()));
    file.read(values);
  }

  float at(std::int64_t z, std::int64_t y, std::int64_t x) const {
    return values[static_cast<std::size_t>((z * size[1] + y) * size[2] + x)];
  }

  std::array<std::int64_t, 3> size{};
  Sides spacing{};
  std::vector<float> values;
};

/// One cut: which axes go down and across the picture.
struct Cut {
  std::size_t across;
  std::size_t down;
  std::size_t fixed;
};
constexpr std::array<Cut, 3> cuts = {{{2, 1, 0}, {2, 0, 1}, {1, 0, 2}}};

/// Pixels of an axis, so that the longest one in millimetres has half a thumbnail.
std::array<int, 3> pixels_of(const Samples& scan) {
  constexpr int most = (largest_thumbnail - gap) / 2;
  double longest = 0.0;
  for (std::size_t i = 0; i < 3; ++i) {
    longest = std::max(longest, static_cast<double>(scan.size[i]) * scan.spacing[i]);
  }
  std::array<int, 3> pixels{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double part = static_cast<double>(scan.size[i]) * scan.spacing[i] / longest;
    pixels[i] = std::max(1, static_cast<int>(std::lround(part * most)));
  }
  return pixels;
}

/// Calls `put` for each pixel of a cut, with its place in the cut and in the volume.
template <class Put>
void for_pixels(const Samples& scan, const Cut& cut, const std::array<int, 3>& pixels, const Put& put) {
  const auto sample_of = [&](std::size_t axis, int pixel) {
    return (2 * std::int64_t{pixel} + 1) * scan.size[axis] / (2 * std::int64_t{pixels[axis]});
  };
  std::array<std::int64_t, 3> at{};
  at[cut.fixed] = scan.size[cut.fixed] / 2;
  for (int row = 0; row < pixels[cut.down]; ++row) {
    // Larger coordinates are above.
    at[cut.down] = sample_of(cut.down, pixels[cut.down] - 1 - row);
    for (int column = 0; column < pixels[cut.across]; ++column) {
      at[cut.across] = sample_of(cut.across, column);
      put(column, row, at);
    }
  }
}

/// What is black, and what is white.
std::pair<float, float> range_of(const Samples& scan, const std::array<int, 3>& pixels) {
  std::vector<float> seen;
  for (const Cut& cut : cuts) {
    for_pixels(scan, cut, pixels, [&](int, int, const std::array<std::int64_t, 3>& at) {
      const float value = scan.at(at[0], at[1], at[2]);
      if (std::isfinite(value)) seen.push_back(value);
    });
  }
  if (seen.empty()) return {0.0F, 1.0F};
  const std::size_t few = seen.size() / 500;
  const auto nth = [&](std::size_t place) {
    std::ranges::nth_element(seen, seen.begin() + static_cast<std::ptrdiff_t>(place));
    return seen[place];
  };
  const float low = nth(few);
  const float high = nth(seen.size() - 1 - few);
  return {low, high > low ? high : low + 1.0F};
}

std::uint8_t grey_of(float value, const std::pair<float, float>& range) {
  if (!std::isfinite(value)) return 0;
  const double share = (static_cast<double>(value) - static_cast<double>(range.first)) /
                       (static_cast<double>(range.second) - static_cast<double>(range.first));
  return static_cast<std::uint8_t>(std::lround(std::clamp(share, 0.0, 1.0) * 255.0));
}

ColourImage draw(const Samples& scan, const std::optional<Samples>& labels) {
  const std::array<int, 3> pixels = pixels_of(scan);
  ColourImage image;
  // Across z and y above, across x below.
  image.width = std::max(2 * pixels[2] + gap, pixels[1]);
  image.height = std::max(pixels[1], pixels[0]) + gap + pixels[0];
  image.pixels.assign(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3, 0);
  const std::pair<float, float> range = range_of(scan, pixels);
  const std::array<std::array<int, 2>, 3> corners = {
      {{0, 0}, {pixels[2] + gap, 0}, {0, std::max(pixels[1], pixels[0]) + gap}}};
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    for_pixels(scan, cuts[i], pixels, [&](int column, int row, const std::array<std::int64_t, 3>& at) {
      const auto place = static_cast<std::size_t>(corners[i][1] + row) * static_cast<std::size_t>(image.width) +
                         static_cast<std::size_t>(corners[i][0] + column);
      std::uint8_t* const to = image.pixels.data() + place * 3;
      const std::uint8_t grey = grey_of(scan.at(at[0], at[1], at[2]), range);
      std::fill_n(to, 3, grey);
      const int label = labels ? static_cast<int>(labels->at(at[0], at[1], at[2])) : 0;
      if (label <= 0) return;
      const Rgb colour = class_colour(label);
      for (std::size_t k = 0; k < 3; ++k) to[k] = static_cast<std::uint8_t>((to[k] + colour[k] + 1) / 2);
    });
  }
  return image;
}

}  // namespace

ColourImage read_volume_cuts(const fs::path& scan) { return draw(Samples(scan), std::nullopt); }

ColourImage read_volume_cuts(const fs::path& scan, const fs::path& labels) {
  const Samples samples(scan);
  std::optional<Samples> over(labels);
  if (over->size != samples.size) throw SlideError(labels.string() + ": another size than " + scan.string());
  return draw(samples, over);
}

}  // namespace slidestream::report
