#include <slidestream/stitch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "image/stitch_blend.hpp"

namespace slidestream {
namespace {

std::size_t tile_bytes_of(const StitchPlan& plan, const NetworkOutput& output) noexcept {
  return static_cast<std::size_t>(plan.x.tile * plan.y.tile * output.channels) * bytes_of(kept_sample(output));
}

}  // namespace

namespace {

/// Pixels whose values are activated at a time: they stay in the nearest cache.
constexpr std::int64_t block_pixels = 256;

using Block = std::array<float, static_cast<std::size_t>(block_pixels)>;

/// Values of some pixels, activated. `values` are the first pixel's of each channel, `pitch` apart.
class Activated {
 public:
  Activated(const float* values, std::int64_t pitch, std::int64_t pixels, const NetworkOutput& output)
      : values_(values), pitch_(pitch), pixels_(pixels), output_(output) {
    if (output.activation != NetworkActivation::softmax) return;
    for (std::int64_t i = 0; i < pixels; ++i) largest_[i] = values[i];
    for (int channel = 1; channel < output.channels; ++channel) {
      const float* const from = values + channel * pitch;
      for (std::int64_t i = 0; i < pixels; ++i) largest_[i] = from[i] > largest_[i] ? from[i] : largest_[i];
    }
    sums_.fill(0.0F);
    for (int channel = 0; channel < output.channels; ++channel) {
      const float* const from = values + channel * pitch;
      for (std::int64_t i = 0; i < pixels; ++i) sums_[i] += exp_of_negative(from[i] - largest_[i]);
    }
  }

  /// Of one channel.
  const float* channel(int index) {
    const float* const from = values_ + index * pitch_;
    switch (output_.activation) {
      case NetworkActivation::none:
        return from;
      case NetworkActivation::softmax:
        for (std::int64_t i = 0; i < pixels_; ++i) given_[i] = exp_of_negative(from[i] - largest_[i]) / sums_[i];
        return given_.data();
      case NetworkActivation::sigmoid:
        for (std::int64_t i = 0; i < pixels_; ++i) given_[i] = sigmoid_of(from[i]);
        return given_.data();
    }
    return from;
  }

 private:
  const float* values_;
  std::int64_t pitch_;
  std::int64_t pixels_;
  const NetworkOutput& output_;
  Block largest_;
  Block sums_;
  Block given_;
};

/// Notes what values are; false: one of them isn't a finite number.
bool look_at(MappedValues& seen, const float* values, std::int64_t count, const NetworkOutput& output) {
  std::int64_t outside = 0;
  float least = seen.least, largest = seen.largest;
  int wrong = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = values[i];
    // 0 for every finite number.
    wrong |= static_cast<int>(value - value != 0.0F);
    outside += static_cast<std::int64_t>(is_outside(value, output));
    least = value < least ? value : least;
    largest = value > largest ? value : largest;
  }
  seen.outside += outside;
  if (output.kind == NetworkOutput::Kind::labels) {
    seen.ignored += std::count(values, values + count, static_cast<float>(output.ignore));
  }
  seen.least = least;
  seen.largest = largest;
  return wrong == 0;
}

/// Counts pixels of which a sigmoid makes several classes the largest sample, so that the lowest of them is the label.
class Saturation {
 public:
  explicit Saturation(const NetworkOutput& output)
      : is_asked_(output.kind == NetworkOutput::Kind::classes && output.activation == NetworkActivation::sigmoid) {
    largest_.fill(none);
  }

  /// A class of some pixels. Scores that are equal themselves don't count.
  void add(const float* probabilities, const float* scores, std::int64_t pixels) {
    if (!is_asked_) return;
    constexpr float most = 65535.0F;
    for (std::int64_t i = 0; i < pixels; ++i) {
      const auto sample = static_cast<std::int32_t>(mapped_value(probabilities[i], 0.0F, most, most));
      if (sample > largest_[i]) {
        largest_[i] = sample;
        score_[i] = scores[i];
        several_[i] = 0;
      } else if (sample == largest_[i] && scores[i] != score_[i]) {
        several_[i] = 1;
      }
    }
  }
  /// Of the pixels since the last call.
  std::int64_t take(std::int64_t pixels) {
    if (!is_asked_) return 0;
    const std::int64_t count = std::count(several_.begin(), several_.begin() + pixels, 1);
    several_.fill(0);
    largest_.fill(none);
    return count;
  }

 private:
  static constexpr std::int32_t none = -1;
  bool is_asked_;
  std::array<std::int32_t, static_cast<std::size_t>(block_pixels)> largest_;
  std::array<float, static_cast<std::size_t>(block_pixels)> score_{};  ///< of the first class that has it
  std::array<std::uint8_t, static_cast<std::size_t>(block_pixels)> several_{};
};

template <class Use>
MappedValues for_values(const float* values, std::int64_t pixels, const NetworkOutput& output, const Use& use) {
  MappedValues seen;
  seen.least = std::numeric_limits<float>::max();
  seen.largest = std::numeric_limits<float>::lowest();
  bool finite = true;
  if (output.activation != NetworkActivation::none) {
    // Of what an activation makes of such a value nothing can be told.
    for (std::int64_t i = 0; i < pixels * output.channels; ++i) finite = finite && std::isfinite(values[i]);
  }
  Saturation saturation(output);
  for (std::int64_t first = 0; finite && first < pixels; first += block_pixels) {
    const std::int64_t count = std::min(block_pixels, pixels - first);
    Activated activated(values + first, pixels, count, output);
    for (int channel = 0; channel < output.channels; ++channel) {
      const float* const of_channel = activated.channel(channel);
      finite = look_at(seen, of_channel, count, output) && finite;
      saturation.add(of_channel, values + channel * pixels + first, count);
      use(of_channel, first, count, channel);
    }
    seen.saturated += saturation.take(count);
  }
  if (!finite) {
    for (seen.not_finite = 0; std::isfinite(values[seen.not_finite]);) ++seen.not_finite;
  }
  return seen;
}

}  // namespace

template <class Sample>
MappedValues map_values(Sample* to, const float* values, std::int64_t pixels, const NetworkOutput& output) {
  constexpr auto most = static_cast<float>(std::numeric_limits<Sample>::max());
  const float factor = most / (output.high - output.low);
  const int channels = output.channels;
  return for_values(values, pixels, output,
                    [&](const float* from, std::int64_t first, std::int64_t count, int channel) {
                      Sample* const begin = to + first * channels + channel;
                      for (std::int64_t i = 0; i < count; ++i) {
                        begin[i * channels] = static_cast<Sample>(mapped_value(from[i], output.low, factor, most));
                      }
                    });
}

template MappedValues map_values(std::uint8_t*, const float*, std::int64_t, const NetworkOutput&);
template MappedValues map_values(std::uint16_t*, const float*, std::int64_t, const NetworkOutput&);

MappedValues look_at_values(const float* values, std::int64_t pixels, const NetworkOutput& output) {
  return for_values(values, pixels, output, [](const float*, std::int64_t, std::int64_t, int) {});
}

std::uint64_t StitchBand::bytes(const StitchPlan& plan, const NetworkOutput& output) noexcept {
  return static_cast<std::uint64_t>(std::min<std::int64_t>(2, plan.y.count) * plan.x.count) *
         tile_bytes_of(plan, output);
}

PixelFormat StitchBand::format(const NetworkOutput& output) noexcept {
  if (output.kind == NetworkOutput::Kind::classes) return {SampleType::uint8, 1};
  return {output.sample, output.channels};
}

StitchBand::StitchBand(const StitchPlan& plan, const NetworkOutput& output, StitchWeights weights)
    : plan_(plan),
      output_(output),
      channels_(output.channels),
      sample_(kept_sample(output)),
      ramp_(stitch_ramp(weights, plan.x.overlap)),
      tile_bytes_(tile_bytes_of(plan, output)),
      present_(static_cast<std::size_t>(plan.tiles())),
      rows_(plan) {
  check_stitched(output);
  // Every byte that is read is written before.
  tiles_.reset(new std::byte[static_cast<std::size_t>(bytes(plan, output))]);
}

StitchRows::StitchRows(const StitchPlan& plan)
    : down_(plan.y), missing_(static_cast<std::size_t>(plan.y.count), plan.x.count) {}

void StitchRows::arrived(std::int64_t row) {
  --missing_[static_cast<std::size_t>(row)];
  while (whole_ < down_.count && missing_[static_cast<std::size_t>(whole_)] == 0) ready_ = down_.whole_after(whole_++);
}

void StitchRows::release(std::int64_t rows) {
  while (freed_ < down_.count && down_.end_of(freed_) <= rows) ++freed_;
}

MappedValues StitchBand::put(StitchTile tile, std::span<const float> values) {
  const std::int64_t pixels = plan_.x.tile * plan_.y.tile;
  if (!has_room(tile.row) || values.size() != static_cast<std::size_t>(pixels * channels_)) {
    throw std::invalid_argument("a tile has no room, or other values than its image has samples");
  }
  std::byte* const to =
      tiles_.get() + static_cast<std::size_t>((tile.row % 2) * plan_.x.count + tile.column) * tile_bytes_;
  if (sample_ == SampleType::uint8) {
    return map_values(reinterpret_cast<std::uint8_t*>(to), values.data(), pixels, output_);
  }
  return map_values(reinterpret_cast<std::uint16_t*>(to), values.data(), pixels, output_);
}

void StitchBand::arrived(StitchTile tile, bool present) {
  present_[static_cast<std::size_t>(tile.row * plan_.x.count + tile.column)] = present ? 1 : 0;
  rows_.arrived(tile.row);
}

void StitchBand::gather(const PixelView<MemorySpace::host>& out) const {
  if (out.format != format(output_) || out.image != plan_.image || out.rect.bottom() > ready()) {
    throw std::invalid_argument("pixels are wanted whose tiles aren't there, or of another image");
  }
  if (sample_ == SampleType::uint8) {
    gather_rows<std::uint8_t>(out);
  } else {
    gather_rows<std::uint16_t>(out);
  }
}

template <class Sample>
void StitchBand::gather_rows(const PixelView<MemorySpace::host>& out) const {
  const bool labels = output_.kind == NetworkOutput::Kind::classes;
  const std::uint32_t fill = fill_of(output_, format(output_));
  const StitchAxis& across = plan_.x;
  const StitchAxis& down = plan_.y;
  for (std::int64_t y = out.rect.y; y < out.rect.bottom(); ++y) {
    // One or two rows of tiles, with their weights.
    const std::int64_t lower = down.tile_at(y);
    const std::int64_t t_down = down.blend_at(y, lower);
    std::array<std::int64_t, 2> tile_rows = {lower, lower - 1};
    std::array<std::uint32_t, 2> row_weights = {256, 0};
    int rows = 1;
    if (t_down >= 0) {
      row_weights[0] = ramp_[static_cast<std::size_t>(t_down)];
      row_weights[1] = 256 - row_weights[0];
      rows = 2;
    }
    Sample* to = labels ? nullptr : out.row<Sample>(y);
    std::uint8_t* label = labels ? out.row<std::uint8_t>(y) : nullptr;
    for (std::int64_t x = out.rect.x; x < out.rect.right();) {
      const std::int64_t right = across.tile_at(x);
      const bool two = across.blend_at(x, right) >= 0;
      // Pixels that the same tiles count at.
      const std::int64_t end =
          std::min(out.rect.right(), two ? right * across.step() + across.overlap : across.whole_after(right));
      struct Place {
        const Sample* first;  ///< of pixel x; null where the tile is absent
        std::uint32_t down;
        bool right;
      };
      std::array<Place, 4> places{};
      int count = 0;
      for (int row = 0; row < rows; ++row) {
        if (row_weights[row] == 0) continue;
        for (int left = 0; left < (two ? 2 : 1); ++left) {
          const std::int64_t column = right - left;
          const std::int64_t number = tile_rows[row] * across.count + column;
          const Sample* first = nullptr;
          if (present_[static_cast<std::size_t>(number)] != 0) {
            const auto slot = static_cast<std::size_t>((tile_rows[row] % 2) * across.count + column);
            first = reinterpret_cast<const Sample*>(tiles_.get() + slot * tile_bytes_) +
                    ((y - down.begin(tile_rows[row])) * across.tile + x - across.begin(column)) * channels_;
          }
          places[count++] = {first, row_weights[row], left == 0};
        }
      }
      if (count == 1 && !labels) {
        const auto samples = static_cast<std::size_t>((end - x) * channels_);
        if (places[0].first != nullptr) {
          std::memcpy(to, places[0].first, samples * sizeof(Sample));
        } else {
          std::fill_n(to, samples, static_cast<Sample>(fill));
        }
        to += samples;
        x = end;
        continue;
      }
      for (std::int64_t i = 0; x < end; ++x, ++i) {
        const std::uint32_t weight = two ? ramp_[static_cast<std::size_t>(across.blend_at(x, right))] : 256;
        CountedTiles<Sample> tiles;
        for (int k = 0; k < count; ++k) {
          const std::uint32_t w = places[k].down * (places[k].right ? weight : 256 - weight);
          if (w == 0) continue;
          tiles.add(places[k].first == nullptr ? nullptr : places[k].first + i * channels_, w);
        }
        if (labels) {
          *label++ = label_of(tiles, channels_, output_.ignore);
        } else {
          for (int channel = 0; channel < channels_; ++channel) {
            *to++ = static_cast<Sample>(blended(tiles, channel, fill));
          }
        }
      }
    }
  }
}

}  // namespace slidestream
