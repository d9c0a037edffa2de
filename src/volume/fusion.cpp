#include "volume/fusion.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "config/toml_text.hpp"
#include "runtime/host_array.hpp"
#include "volume/axis_runs.hpp"
#include "volume/blend_weights.hpp"
#include "volume/plane_sums.hpp"

namespace slidestream::volume {
namespace {

constexpr float most_sample = 65535.0F;

[[noreturn]] void fail_at(const FragmentOutput& output, const Extent& fragment, std::int64_t voxel,
                          const std::string& what, const std::string& expected = "finite numbers") {
  const std::int64_t x = voxel % fragment[2];
  const std::int64_t y = voxel / fragment[2] % fragment[1];
  const std::int64_t z = voxel / fragment[2] / fragment[1];
  throw Error(std::string(output.called) + " gives " + what + " at z, y, x = " + std::to_string(z) + ", " +
              std::to_string(y) + ", " + std::to_string(x) + " of the fragment; expected " + expected);
}

void check_values(std::size_t values, const FragmentGrid& grid, int channels) {
  if (values == static_cast<std::size_t>(count_of(grid.fragment()) * channels)) return;
  throw std::invalid_argument("values of another number of channels or samples");
}

/// First sample of each fragment along an axis.
std::vector<std::int64_t> begins_of(const FragmentAxis& axis) {
  std::vector<std::int64_t> begins;
  for (std::int64_t i = 0; i < axis.count; ++i) begins.push_back(axis.begin(i));
  return begins;
}

class Vote final : public Fusion {
 public:
  Vote(const FragmentGrid& grid, const FragmentOutput& output)
      : grid_(grid),
        output_(output),
        voxels_(static_cast<std::size_t>(count_of(grid.fragment()))),
        kept_(grid.count() * voxels_),
        runs_(runs_of(grid)),
        begins_{begins_of(grid.axis(0)), begins_of(grid.axis(1)), begins_of(grid.axis(2))} {}

  void put(std::size_t fragment, std::span<const float> values) override {
    check_values(values.size(), grid_, output_.channels);
    const auto labels = kept(fragment);
    if (output_.labels) {
      take_labels(labels, values);
    } else {
      choose_largest(labels, values);
    }
  }

  void put_labels(std::size_t fragment, std::span<const std::uint16_t> labels) override {
    check_values(labels.size(), grid_, 1);
    std::ranges::copy(labels, kept(fragment).begin());
  }

  void planes(std::int64_t z, std::span<std::uint16_t> labels) const override {
    std::vector<std::uint32_t> votes(static_cast<std::size_t>(std::max(output_.most_label, output_.ignore)) + 1);
    std::vector<std::uint16_t> found;
    std::vector<const std::uint16_t*> rows;
    for (auto to = labels.begin(); to != labels.end(); ++z) {
      const AxisRun& in_z = run_at(runs_[0], z);
      for (const AxisRun& in_y : runs_[1]) {
        for (std::int64_t y = in_y.begin; y < in_y.end; ++y) {
          for (const AxisRun& in_x : runs_[2]) {
            find_rows({z, y, in_x.begin}, {in_z, in_y, in_x}, rows);
            for (std::int64_t i = 0; i < in_x.end - in_x.begin; ++i) *to++ = elect(rows, i, votes, found);
          }
        }
      }
    }
  }

 private:
  std::span<std::uint16_t> kept(std::size_t fragment) const {
    return std::span(kept_).subspan(fragment * voxels_, voxels_);
  }

  void take_labels(std::span<std::uint16_t> labels, std::span<const float> values) const {
    const auto most = static_cast<float>(output_.most_label);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float value = values[i];
      if (!(value >= 0.0F && value <= most) || value != std::floor(value)) {
        fail_at(output_, grid_.fragment(), static_cast<std::int64_t>(i),
                "the label " + to_toml_number(static_cast<double>(value)),
                "a whole number from 0 to " + std::to_string(output_.most_label));
      }
      labels[i] = static_cast<std::uint16_t>(value);
    }
  }

  void choose_largest(std::span<std::uint16_t> labels, std::span<const float> values) const {
    const std::size_t samples = labels.size();
    constexpr std::size_t block = 1024;
    std::array<float, block> largest;
    for (std::size_t first = 0; first < samples; first += block) {
      const std::size_t count = std::min(block, samples - first);
      for (int channel = 0; channel < output_.channels; ++channel) {
        const float* const from = values.data() + static_cast<std::size_t>(channel) * samples + first;
        for (std::size_t i = 0; i < count; ++i) {
          // 0 for every finite number.
          if (from[i] - from[i] != 0.0F) {
            fail_at(output_, grid_.fragment(), static_cast<std::int64_t>(first + i),
                    "no finite number in channel " + std::to_string(channel));
          }
          if (channel > 0 && !(from[i] > largest[i])) continue;
          largest[i] = from[i];
          labels[first + i] = static_cast<std::uint16_t>(channel);
        }
      }
    }
  }

  /// The labels of a voxel and of those behind it along x, in each fragment that it lies in.
  void find_rows(const Extent& voxel, const std::array<AxisRun, 3>& in, std::vector<const std::uint16_t*>& rows) const {
    rows.clear();
    const Extent& fragment = grid_.fragment();
    for (std::int64_t k = in[0].first; k < in[0].last; ++k) {
      for (std::int64_t j = in[1].first; j < in[1].last; ++j) {
        const std::int64_t row_of_fragments = (k * grid_.axis(1).count + j) * grid_.axis(2).count;
        const std::int64_t row = (sample(0, k, voxel) * fragment[1] + sample(1, j, voxel)) * fragment[2];
        for (std::int64_t i = in[2].first; i < in[2].last; ++i) {
          const auto labels = kept(static_cast<std::size_t>(row_of_fragments + i));
          rows.push_back(labels.data() + row + sample(2, i, voxel));
        }
      }
    }
  }

  /// A voxel's sample of a fragment along an axis.
  std::int64_t sample(std::size_t axis, std::int64_t fragment, const Extent& voxel) const {
    return voxel[axis] - begins_[axis][static_cast<std::size_t>(fragment)];
  }

  /// `votes` are zeros, and are left so; `found` is scratch.
  std::uint16_t elect(const std::vector<const std::uint16_t*>& rows, std::int64_t i, std::vector<std::uint32_t>& votes,
                      std::vector<std::uint16_t>& found) const {
    // Where all say the same, that is the result, also if it doesn't vote.
    if (!rows.empty() && std::ranges::all_of(rows, [&](const auto* row) { return row[i] == rows.front()[i]; })) {
      return rows.front()[i];
    }
    found.clear();
    for (const std::uint16_t* const row : rows) {
      const std::uint16_t label = row[i];
      if (label == output_.ignore) continue;
      if (votes[label]++ == 0) found.push_back(label);
    }
    std::uint32_t most = 0;
    auto winner = static_cast<std::uint16_t>(output_.ignore);
    for (const std::uint16_t label : found) {
      if (votes[label] > most || (votes[label] == most && label < winner)) winner = label;
      most = std::max(most, votes[label]);
      votes[label] = 0;
    }
    return winner;
  }

  FragmentGrid grid_;
  FragmentOutput output_;
  std::size_t voxels_;                      ///< of a fragment
  runtime::HostArray<std::uint16_t> kept_;  ///< labels by fragment
  GridRuns runs_;
  std::array<std::vector<std::int64_t>, 3> begins_;  ///< of fragments along an axis
};

/// Values as samples from 0 to 65,535: fragment x channels. \return values outside the range. \throws Error
std::int64_t map_fragment(std::span<std::uint16_t> samples, std::span<const float> values, const FragmentGrid& grid,
                          const FragmentOutput& fragment_output, bool clamps) {
  NetworkOutput output;
  output.kind = clamps ? NetworkOutput::Kind::image : NetworkOutput::Kind::classes;
  output.channels = fragment_output.channels;
  output.activation = fragment_output.activation;
  output.low = fragment_output.low;
  output.high = fragment_output.high;
  const std::int64_t voxels = count_of(grid.fragment());
  const MappedValues seen = map_values(samples.data(), values.data(), voxels, output);
  if (seen.not_finite >= 0) fail_at(fragment_output, grid.fragment(), seen.not_finite % voxels, "no finite number");
  if (!seen.sound(output)) {
    throw Error(
        std::string(fragment_output.called) + " gives values from " + to_toml_number(static_cast<double>(seen.least)) +
        " to " + to_toml_number(static_cast<double>(seen.largest)) + ", and " + fragment_output.range_name + " is " +
        to_toml_number(static_cast<double>(output.low)) + " to " + to_toml_number(static_cast<double>(output.high)) +
        "; set " + fragment_output.range_name + " or " + fragment_output.activation_name);
  }
  return seen.outside;
}

/// Planes of two layers of fragments along the first axis, at most.
std::size_t planes_at_once(const FragmentGrid& grid) {
  const FragmentAxis& axis = grid.axis(0);
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < axis.count; ++i) {
    const std::int64_t last = std::min(i + 1, axis.count - 1);
    const std::int64_t end = std::min(axis.begin(last) + axis.fragment, axis.size);
    most = std::max(most, end - std::max<std::int64_t>(axis.begin(i), 0));
  }
  return static_cast<std::size_t>(most);
}

class Mean final : public Fusion {
 public:
  Mean(const FragmentGrid& grid, const FragmentOutput& output)
      : grid_(grid),
        output_(output),
        plane_(static_cast<std::size_t>(grid.volume()[1] * grid.volume()[2])),
        planes_(static_cast<std::size_t>(grid.volume()[0])),
        sums_(plane_ * static_cast<std::size_t>(output.channels), planes_at_once(grid), planes_.size()),
        labels_(plane_ * planes_.size()),
        runs_(runs_of(grid)) {
    check_fusion(VolumeFusion::mean, grid);
    for (const AxisRun& run : runs_[0]) {
      for (std::int64_t z = run.begin; z < run.end; ++z) {
        planes_[static_cast<std::size_t>(z)].left =
            run.fragments() * static_cast<std::uint64_t>(grid.axis(1).count * grid.axis(2).count);
      }
    }
  }

  static std::uint64_t bytes_of(const FragmentGrid& grid, const FragmentOutput& output) noexcept {
    const auto plane = static_cast<std::uint64_t>(grid.volume()[1] * grid.volume()[2]);
    const std::uint64_t sums = plane * static_cast<std::uint64_t>(output.channels) * sizeof(std::uint32_t);
    const auto planes = static_cast<std::uint64_t>(grid.volume()[0]);
    return planes_at_once(grid) * (sums + sizeof(std::uint32_t*)) +
           planes * (plane * sizeof(std::uint16_t) + sizeof(Plane));
  }

  void put(std::size_t fragment, std::span<const float> values) override {
    check_values(values.size(), grid_, output_.channels);
    const runtime::HostArray<std::uint16_t> samples(values.size());
    map_fragment(samples, values, grid_, output_, false);
    const Extent from = grid_.begin(fragment);
    const InsideRange planes = inside(from[0], grid_.fragment()[0], grid_.volume()[0]);
    for (std::int64_t z = planes.first; z < planes.first + planes.count; ++z) add_plane(z, from, samples);
  }

  void planes(std::int64_t z, std::span<std::uint16_t> labels) const override {
    std::copy_n(labels_of(static_cast<std::size_t>(z)), labels.size(), labels.begin());
  }

 private:
  /// \param z  of the fragment
  void add_plane(std::int64_t z, const Extent& from, std::span<const std::uint16_t> samples) {
    const Extent& fragment = grid_.fragment();
    const Extent& volume = grid_.volume();
    const InsideRange rows = inside(from[1], fragment[1], volume[1]);
    const InsideRange columns = inside(from[2], fragment[2], volume[2]);
    const auto of_volume = static_cast<std::size_t>(from[0] + z);
    Plane& plane = planes_[of_volume];
    const std::lock_guard lock(plane.mutex);
    const std::int64_t channels = output_.channels;
    if (plane.sums == nullptr) plane.sums = sums_.begin();
    for (std::int64_t y = rows.first; y < rows.first + rows.count; ++y) {
      std::uint32_t* to = plane.sums + ((from[1] + y) * volume[2] + from[2] + columns.first) * channels;
      const std::uint16_t* sample = samples.data() + ((z * fragment[1] + y) * fragment[2] + columns.first) * channels;
      for (std::int64_t i = 0; i < columns.count * channels; ++i) to[i] += sample[i];
    }
    if (--plane.left == 0) choose(of_volume);
  }

  /// One plane of the volume; guarded by its mutex until all fragments were put.
  struct Plane {
    std::mutex mutex;
    std::uint64_t left = 0;         ///< fragments with a part of it that weren't put
    std::uint32_t* sums = nullptr;  ///< y, x, channel; null where none was put, or all
  };

  std::uint16_t* labels_of(std::size_t z) const { return labels_.data() + z * plane_; }

  /// Labels take the place of sums, as no fragment can change them any more.
  void choose(std::size_t z) {
    const std::uint64_t n_z = run_at(runs_[0], static_cast<std::int64_t>(z)).fragments();
    const std::uint32_t* sums = planes_[z].sums;
    std::uint16_t* to = labels_of(z);
    for (const AxisRun& in_y : runs_[1]) {
      for (std::int64_t y = in_y.begin; y < in_y.end; ++y) {
        for (const AxisRun& in_x : runs_[2]) {
          const std::uint64_t n = n_z * in_y.fragments() * in_x.fragments();
          for (std::int64_t x = in_x.begin; x < in_x.end; ++x, sums += output_.channels) *to++ = label_of(sums, n);
        }
      }
    }
    sums_.end(std::exchange(planes_[z].sums, nullptr));
  }

  /// The channel with the largest average. \param n  fragments in a sum
  std::uint16_t label_of(const std::uint32_t* sums, std::uint64_t n) const {
    std::uint64_t largest = 0;
    std::uint16_t label = 0;
    for (int channel = 0; channel < output_.channels; ++channel) {
      const std::uint64_t average = (2 * std::uint64_t{sums[channel]} + n) / (2 * n);
      if (average > largest) label = static_cast<std::uint16_t>(channel);
      largest = std::max(largest, average);
    }
    return label;
  }

  FragmentGrid grid_;
  FragmentOutput output_;
  std::size_t plane_;  ///< voxels of one
  std::vector<Plane> planes_;
  PlaneSums sums_;
  runtime::HostArray<std::uint16_t> labels_;  ///< of planes that are whole
  GridRuns runs_;
};

class Blend final : public Fusion {
 public:
  Blend(const FragmentGrid& grid, const FragmentOutput& output, StitchWeights weights)
      : grid_(grid),
        output_(output),
        voxels_(static_cast<std::size_t>(count_of(grid.fragment()))),
        kept_(grid.count() * voxels_),
        at_{weights_at(grid.axis(0), weights), weights_at(grid.axis(1), weights), weights_at(grid.axis(2), weights)} {
    if (output.channels != 1) throw std::invalid_argument("images of one channel are blended");
  }

  void put(std::size_t fragment, std::span<const float> values) override {
    check_values(values.size(), grid_, 1);
    const auto samples = std::span(kept_).subspan(fragment * voxels_, voxels_);
    clamped_ += map_fragment(samples, values, grid_, output_, true);
    values_ += static_cast<std::int64_t>(values.size());
  }

  static std::uint64_t bytes_of_weights(const FragmentGrid& grid) noexcept {
    const Extent& volume = grid.volume();
    return static_cast<std::uint64_t>(volume[0] + volume[1] + volume[2]) * sizeof(AxisWeights);
  }

  void planes(std::int64_t z, std::span<float> image) const override {
    const double low = static_cast<double>(output_.low);
    const double step = (static_cast<double>(output_.high) - low) / static_cast<double>(most_sample);
    for (auto to = image.begin(); to != image.end(); ++z) {
      for (std::int64_t y = 0; y < grid_.volume()[1]; ++y) {
        for (std::int64_t x = 0; x < grid_.volume()[2]; ++x) {
          *to++ = static_cast<float>(low + static_cast<double>(blended(z, y, x)) * step);
        }
      }
    }
  }

  double clamped_share() const noexcept override {
    const std::int64_t values = values_.load();
    return values == 0 ? 0.0 : static_cast<double>(clamped_.load()) / static_cast<double>(values);
  }

 private:
  std::uint64_t blended(std::int64_t z, std::int64_t y, std::int64_t x) const {
    const AxisWeights& at_z = at_[0][static_cast<std::size_t>(z)];
    const AxisWeights& at_y = at_[1][static_cast<std::size_t>(y)];
    const AxisWeights& at_x = at_[2][static_cast<std::size_t>(x)];
    std::uint64_t sum = std::uint64_t{1} << (weight_bits - 1);
    for (int i = 0; i < at_z.count; ++i) {
      for (int j = 0; j < at_y.count; ++j) {
        for (int k = 0; k < at_x.count; ++k) {
          const auto [a, b, c] =
              std::array{static_cast<std::size_t>(i), static_cast<std::size_t>(j), static_cast<std::size_t>(k)};
          const std::uint64_t weight = std::uint64_t{at_z.weight[a]} * at_y.weight[b] * at_x.weight[c];
          sum += weight * sample_at({at_z.fragment[a], at_y.fragment[b], at_x.fragment[c]}, {z, y, x});
        }
      }
    }
    return sum >> weight_bits;
  }

  std::uint64_t sample_at(const Extent& place, const Extent& voxel) const {
    const std::int64_t number = (place[0] * grid_.axis(1).count + place[1]) * grid_.axis(2).count + place[2];
    std::int64_t at = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      at = at * grid_.fragment()[i] + voxel[i] - grid_.axis(i).begin(place[i]);
    }
    return kept_[static_cast<std::size_t>(number) * voxels_ + static_cast<std::size_t>(at)];
  }

  FragmentGrid grid_;
  FragmentOutput output_;
  std::size_t voxels_;                      ///< of a fragment
  runtime::HostArray<std::uint16_t> kept_;  ///< samples by fragment
  std::array<std::vector<AxisWeights>, 3> at_;
  std::atomic<std::int64_t> values_ = 0;   ///< that were put
  std::atomic<std::int64_t> clamped_ = 0;  ///< of those
};

}  // namespace

void Fusion::put_labels(std::size_t /*fragment*/, std::span<const std::uint16_t> /*labels*/) {
  throw std::logic_error("this fusion takes no labels");
}

void Fusion::planes(std::int64_t /*z*/, std::span<std::uint16_t> /*labels*/) const {
  throw std::logic_error("this fusion gives no labels");
}

void Fusion::planes(std::int64_t /*z*/, std::span<float> /*image*/) const {
  throw std::logic_error("this fusion gives no image");
}

std::unique_ptr<Fusion> make_vote(const FragmentGrid& grid, const FragmentOutput& output) {
  return std::make_unique<Vote>(grid, output);
}

std::unique_ptr<Fusion> make_mean(const FragmentGrid& grid, const FragmentOutput& output) {
  return std::make_unique<Mean>(grid, output);
}

std::unique_ptr<Fusion> make_blend(const FragmentGrid& grid, const FragmentOutput& output, StitchWeights weights) {
  return std::make_unique<Blend>(grid, output, weights);
}

std::unique_ptr<Fusion> make_fusion(const Config& config, const FragmentGrid& grid, const FragmentOutput& output) {
  switch (config.volume.fusion) {
    case VolumeFusion::vote:
      return make_vote(grid, output);
    case VolumeFusion::mean:
      return make_mean(grid, output);
    case VolumeFusion::blend:
      return make_blend(grid, output, config.stitch.weights);
  }
  return nullptr;
}

void check_fusion(VolumeFusion fusion, const FragmentGrid& grid) {
  if (fusion != VolumeFusion::mean) return;
  // Sums have 32 bits.
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max() / 65535;
  std::uint64_t overlap = 1;
  for (const auto& runs : runs_of(grid))
    overlap *= std::ranges::max_element(runs, {}, &AxisRun::fragments)->fragments();
  if (overlap <= most) return;
  throw Error("scores of " + std::to_string(overlap) + " fragments can't be averaged; expected at most " +
              std::to_string(most) + " that overlap");
}

std::uint64_t fusion_bytes(VolumeFusion fusion, const FragmentGrid& grid, const FragmentOutput& output) noexcept {
  if (fusion == VolumeFusion::mean) return Mean::bytes_of(grid, output);
  const std::uint64_t kept = static_cast<std::uint64_t>(count_of(grid.fragment())) * grid.count();
  return kept * sizeof(std::uint16_t) + (fusion == VolumeFusion::blend ? Blend::bytes_of_weights(grid) : 0);
}

}  // namespace slidestream::volume
