#include "report/volume_cuts.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <slidestream/error.hpp>
#include <span>
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

/// A volume before its samples are read.
struct Volume {
  explicit Volume(const fs::path& path) : file(path.string()) {
    size = {file.header().size[2], file.header().size[1], file.header().size[0]};
    if (file.header().voxels() > most_voxels) {
      throw SlideError(path.string() + ": it has more than 2^28 voxels, too many for a picture");
    }
    spacing = file.header().geometry.spacing_mm();
    const bool known = std::ranges::all_of(spacing, [](double side) { return std::isfinite(side) && side > 0.0; });
    if (!known) spacing = {1.0, 1.0, 1.0};
  }

  volume::NiftiFile file;
  std::array<std::int64_t, 3> size{};
  Sides spacing{};
};

/// One cut: which axes go down and across the picture.
struct Cut {
  std::size_t across;
  std::size_t down;
  std::size_t fixed;
};
constexpr std::array<Cut, 3> cuts = {{{2, 1, 0}, {2, 0, 1}, {1, 0, 2}}};

/// Pixels of an axis, so that the longest one in millimetres has half a thumbnail.
std::array<int, 3> pixels_of(const Volume& scan) {
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

/// Calls `put` for each pixel of a cut, with its place in the cut and the number of its sample in the volume.
template <class Put>
void for_pixels(const Volume& scan, const Cut& cut, const std::array<int, 3>& pixels, const Put& put) {
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
      put(column, row, static_cast<std::size_t>((at[0] * scan.size[1] + at[1]) * scan.size[2] + at[2]));
    }
  }
}

/// The samples of the pixels of all cuts, one after the other. No others are kept.
std::vector<float> samples_of(Volume& from, const std::array<int, 3>& pixels, const std::function<bool()>& give_up) {
  struct Wanted {
    std::size_t sample;
    std::size_t place;
  };
  std::vector<Wanted> wanted;
  for (const Cut& cut : cuts) {
    for_pixels(from, cut, pixels, [&](int, int, std::size_t sample) { wanted.push_back({sample, wanted.size()}); });
  }
  std::ranges::sort(wanted, {}, &Wanted::sample);
  std::vector<float> samples(wanted.size());
  auto next = wanted.begin();
  from.file.read_pieces(
      [&](std::size_t first, std::span<const float> values) {
        for (; next != wanted.end() && next->sample < first + values.size(); ++next) {
          samples[next->place] = values[next->sample - first];
        }
      },
      give_up);
  return samples;
}

/// What is black, and what is white.
std::pair<float, float> range_of(const std::vector<float>& samples) {
  std::vector<float> seen;
  for (const float value : samples) {
    if (std::isfinite(value)) seen.push_back(value);
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

/// \param labels  null: none
ColourImage draw(Volume& scan, Volume* labels, const std::function<bool()>& give_up) {
  const std::array<int, 3> pixels = pixels_of(scan);
  const std::vector<float> samples = samples_of(scan, pixels, give_up);
  const std::vector<float> over = labels == nullptr ? std::vector<float>() : samples_of(*labels, pixels, give_up);
  ColourImage image;
  // Across z and y above, across x below.
  image.width = std::max(2 * pixels[2] + gap, pixels[1]);
  image.height = std::max(pixels[1], pixels[0]) + gap + pixels[0];
  image.pixels.assign(static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height) * 3, 0);
  const std::pair<float, float> range = range_of(samples);
  const std::array<std::array<int, 2>, 3> corners = {
      {{0, 0}, {pixels[2] + gap, 0}, {0, std::max(pixels[1], pixels[0]) + gap}}};
  std::size_t next = 0;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    for_pixels(scan, cuts[i], pixels, [&](int column, int row, std::size_t) {
      const auto place = static_cast<std::size_t>(corners[i][1] + row) * static_cast<std::size_t>(image.width) +
                         static_cast<std::size_t>(corners[i][0] + column);
      std::uint8_t* const to = image.pixels.data() + place * 3;
      std::fill_n(to, 3, grey_of(samples[next], range));
      const float label = over.empty() ? 0.0F : over[next];
      ++next;
      // Numbers beyond an int's aren't labels.
      if (!(label >= 1.0F && label < 2147483648.0F)) return;
      const Rgb colour = class_colour(static_cast<int>(label));
      for (std::size_t k = 0; k < 3; ++k) to[k] = static_cast<std::uint8_t>((to[k] + colour[k] + 1) / 2);
    });
  }
  return image;
}

}  // namespace

ColourImage read_volume_cuts(const fs::path& scan, const std::function<bool()>& give_up) {
  Volume samples(scan);
  return draw(samples, nullptr, give_up);
}

ColourImage read_volume_cuts(const fs::path& scan, const fs::path& labels, const std::function<bool()>& give_up) {
  Volume samples(scan);
  Volume over(labels);
  if (over.size != samples.size) throw SlideError(labels.string() + ": another size than " + scan.string());
  return draw(samples, &over, give_up);
}

}  // namespace slidestream::report
