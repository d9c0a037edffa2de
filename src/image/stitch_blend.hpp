#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>

#include <slidestream/stitch.hpp>

/// \file
/// What a network's values become, and what tiles that overlap become at a pixel: for the host and for kernels.

namespace slidestream {

inline constexpr int most_stitched_channels = 16;

/// Samples that an image's are put together from: labels are chosen by 16 bits.
constexpr SampleType kept_sample(const NetworkOutput& output) noexcept {
  return output.kind == NetworkOutput::Kind::classes ? SampleType::uint16 : output.sample;
}

/// \throws std::invalid_argument for vectors, and where channels aren't 1 to 16, or a range is empty.
inline void check_stitched(const NetworkOutput& output) {
  if (output.kind == NetworkOutput::Kind::vector || output.sample == SampleType::float32 || output.channels < 1 ||
      output.channels > most_stitched_channels) {
    throw std::invalid_argument("an image is put together from 1 to 16 channels of uint8 or uint16");
  }
  if (!(output.low < output.high) || !std::isfinite(output.high - output.low)) {
    throw std::invalid_argument("the range of a network's values is empty");
  }
}

/// clamp(rint((value - low) factor)) in float32; what isn't a number becomes one that fits.
SLIDESTREAM_STITCH inline float mapped_value(float value, float low, float factor, float most) {
  const float scaled = (value - low) * factor;
  const float above = scaled > 0.0F ? scaled : 0.0F;
  return rintf(above < most ? above : most);
}

/// Up to four tiles that count at a pixel, and what they weigh.
template <class Sample>
struct CountedTiles {
  const Sample* at[4];  ///< the pixel's samples in the tile; null: it is absent
  std::uint32_t weight[4];
  int count = 0;
  bool all = true;  ///< are present

  SLIDESTREAM_STITCH void add(const Sample* samples, std::uint32_t weighs) {
    at[count] = samples;
    weight[count++] = weighs;
    all = all && samples != nullptr;
  }
};

template <class Sample>
SLIDESTREAM_STITCH inline std::uint32_t blended(const CountedTiles<Sample>& tiles, int channel, std::uint32_t fill) {
  if (tiles.all) {
    std::uint32_t sum = 0;
    for (int k = 0; k < tiles.count; ++k) sum += tiles.weight[k] * tiles.at[k][channel];
    return stitched(sum);
  }
  std::uint64_t sum = 0;
  std::uint64_t weight = 0;
  for (int k = 0; k < tiles.count; ++k) {
    if (tiles.at[k] == nullptr) continue;
    sum += std::uint64_t{tiles.weight[k]} * tiles.at[k][channel];
    weight += tiles.weight[k];
  }
  return weight == 0 ? fill : stitched(sum, weight);
}

/// The label of a pixel: the first of the largest.
template <class Sample>
SLIDESTREAM_STITCH inline std::uint8_t label_of(const CountedTiles<Sample>& tiles, int channels) {
  std::uint32_t best = 0;
  int label = 0;
  for (int channel = 0; channel < channels; ++channel) {
    const std::uint32_t value = blended(tiles, channel, 0);
    if (channel > 0 && value <= best) continue;
    best = value;
    label = channel;
  }
  return static_cast<std::uint8_t>(label);
}

}  // namespace slidestream
