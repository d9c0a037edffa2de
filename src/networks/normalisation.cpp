#include "networks/normalisation.hpp"

#include <bit>
#include <cmath>
#include <cstddef>

namespace slidestream::networks {
namespace {

template <class Tables, class Sample>
void to_planes(std::span<const std::uint8_t> pixels, std::size_t area, const Tables& tables,
               std::span<Sample> planes) noexcept {
  const std::size_t tiles = area == 0 ? 0 : pixels.size() / (area * 3);
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    const std::uint8_t* in = pixels.data() + tile * area * 3;
    Sample* red = planes.data() + tile * area * 3;
    Sample* green = red + area;
    Sample* blue = green + area;
    for (std::size_t i = 0; i < area; ++i) {
      red[i] = tables[in[3 * i]];
      green[i] = tables[256 + in[3 * i + 1]];
      blue[i] = tables[512 + in[3 * i + 2]];
    }
  }
}

}  // namespace

std::uint16_t to_half(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const float size = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7E00U);
  // From half-way between the largest number and the next, which there is none of.
  if (size >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (size < 0x1p-14F) {
    // Whole multiples of 2^-24; 1024 of them are the smallest normal number, whose bits follow on.
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(size * 0x1p24F)));
  }
  // 10 bits of the fraction stay; half of what goes is added, less where the last that stays is even.
  std::uint32_t rounded = (bits & 0x7FFFFFFFU) + 0xFFFU + (bits >> 13 & 1U);
  rounded -= (127U - 15U) << 23;
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

float from_half(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  const std::uint32_t widened = exponent == 0x1F ? 0xFFU : exponent + 127U - 15U;
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

Normalisation::Normalisation(const ModelConfig& model) {
  const double scale = model.scale == 0.0 ? 1.0 : model.scale;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const double mean = model.mean.empty() ? 0.0 : model.mean[channel];
    const double deviation = model.deviation.empty() ? 1.0 : model.deviation[channel];
    for (std::size_t v = 0; v < 256; ++v) {
      const double value = (static_cast<double>(v) * scale / 255.0 - mean) / deviation;
      table_[channel * 256 + v] = static_cast<float>(value);
      half_table_[channel * 256 + v] = to_half(table_[channel * 256 + v]);
    }
  }
}

void Normalisation::run(std::span<const std::uint8_t> pixels, std::size_t area,
                        std::span<float> planes) const noexcept {
  to_planes(pixels, area, table_, planes);
}

void Normalisation::run(std::span<const std::uint8_t> pixels, std::size_t area,
                        std::span<std::uint16_t> planes) const noexcept {
  to_planes(pixels, area, half_table_, planes);
}

}  // namespace slidestream::networks
