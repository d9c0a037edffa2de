#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
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

/// \throws std::invalid_argument for vectors and samples of float32, and where channels aren't 1 to 16 (labels: 1),
/// `ignore` is a class or no sample, or a range is empty.
inline void check_stitched(const NetworkOutput& output) {
  if (output.kind == NetworkOutput::Kind::vector || output.sample == SampleType::float32 || output.channels < 1 ||
      output.channels > most_stitched_channels) {
    throw std::invalid_argument("an image is put together from 1 to 16 channels of uint8 or uint16");
  }
  if (output.kind == NetworkOutput::Kind::classes && (output.ignore < output.channels || output.ignore > 255)) {
    throw std::invalid_argument("the label of what isn't computed is a class, or none of 8 bits");
  }
  if (output.kind == NetworkOutput::Kind::labels && (output.channels != 1 || output.ignore < 0)) {
    throw std::invalid_argument("labels are one channel, and what isn't computed has a label");
  }
  if (!(output.low < output.high) || !std::isfinite(output.high - output.low)) {
    throw std::invalid_argument("the range of a network's values is empty");
  }
}

/// Whether a value, activated, can't stand for a sample: it lies outside of the range, or is no whole number and a
/// label. A class score may exceed the range by what ONNX Runtime rounds: its sigmoid gives up to 1 + 2^-23.
SLIDESTREAM_STITCH inline bool is_outside(float value, const NetworkOutput& output) {
  const float margin = output.kind == NetworkOutput::Kind::classes ? (output.high - output.low) * 0x1p-20F : 0.0F;
  return value < output.low - margin || value > output.high + margin ||
         (output.kind == NetworkOutput::Kind::labels && value != rintf(value));
}

/// clamp(rint((value - low) factor)) in float32; what isn't a number becomes one that fits.
SLIDESTREAM_STITCH inline float mapped_value(float value, float low, float factor, float most) {
  const float scaled = (value - low) * factor;
  const float above = scaled > 0.0F ? scaled : 0.0F;
  return rintf(above < most ? above : most);
}

/// a b + c, rounded twice: compilers make one fused operation of it otherwise, and some processors have none.
SLIDESTREAM_STITCH inline float times_plus(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(__fmul_rn(a, b), c);
#else
  return a * b + c;
#endif
}

/// exp(x) for x <= 0 in float32, within 2 units in the last place; 0 from -87 down. The same bits on the host and on
/// devices. Reduced to 2^k exp(r) with |r| <= ln 2 / 2 as by Cody and Waite (Software Manual for the Elementary
/// Functions, 1980); exp(r) is the polynomial of Cephes' expf (Moshier).
SLIDESTREAM_STITCH inline float exp_of_negative(float x) {
  const float at = x > -87.0F ? x : -87.0F;
  // Adding 1.5 2^23 and taking it away again rounds to a whole number.
  constexpr float magic = 12582912.0F;
  const float k = times_plus(at, 1.44269504F, magic) - magic;
  // ln 2 in two parts, of which the first times k is exact.
  const float r = times_plus(k, 2.12194440e-4F, times_plus(k, -0.693359375F, at));
  float sum = times_plus(1.9875691500e-4F, r, 1.3981999507e-3F);
  sum = times_plus(sum, r, 8.3334519073e-3F);
  sum = times_plus(sum, r, 4.1665795894e-2F);
  sum = times_plus(sum, r, 1.6666665459e-1F);
  sum = times_plus(sum, r, 5.0000001201e-1F);
  sum = times_plus(sum, r * r, r) + 1.0F;
  const std::int32_t bits = (static_cast<std::int32_t>(k) + 127) << 23;
  float power;
  memcpy(&power, &bits, sizeof(power));
  return x > -87.0F ? sum * power : 0.0F;
}

/// 1 / (1 + exp(-x)), without overflow.
SLIDESTREAM_STITCH inline float sigmoid_of(float x) {
  const float small = exp_of_negative(x > 0.0F ? -x : x);
  const float share = 1.0F / (1.0F + small);
  return x > 0.0F ? share : small * share;
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

/// A sample of an image, or a label of labels, where no tile is present.
inline std::uint32_t fill_of(const NetworkOutput& output, const PixelFormat& format) noexcept {
  if (output.kind == NetworkOutput::Kind::labels) return static_cast<std::uint32_t>(output.ignore);
  return format == rgb_format ? 255 : 0;
}

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

/// The label of a pixel: the first class whose weighted sum is the largest; `ignore` where no tile is present. Sums are
/// compared before they are rounded, so a class is off by at most the half unit that mapping rounds by.
template <class Sample>
SLIDESTREAM_STITCH inline std::uint8_t label_of(const CountedTiles<Sample>& tiles, int channels, int ignore) {
  bool is_computed = false;
  for (int k = 0; k < tiles.count; ++k) is_computed = is_computed || tiles.at[k] != nullptr;
  if (!is_computed) return static_cast<std::uint8_t>(ignore);
  std::uint32_t best = 0;
  int label = 0;
  for (int channel = 0; channel < channels; ++channel) {
    // Weights are 65,536 together, so 32 bits hold every sum.
    std::uint32_t sum = 0;
    for (int k = 0; k < tiles.count; ++k) {
      if (tiles.at[k] != nullptr) sum += tiles.weight[k] * tiles.at[k][channel];
    }
    if (channel > 0 && sum <= best) continue;
    best = sum;
    label = channel;
  }
  return static_cast<std::uint8_t>(label);
}

}  // namespace slidestream
