#include "volume/synth_volume.hpp"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <slidestream/error.hpp>
#include <span>
#include <vector>

#include "synth/noise.hpp"
#include "volume/nifti_file.hpp"

namespace slidestream::volume {
namespace {

using synth::mix;
using synth::smoothstep;
using synth::unit;

constexpr std::int64_t longest_side = 4096;
constexpr float brightest = 1200.0F;

float node(std::uint64_t salt, std::int64_t z, std::int64_t y, std::int64_t x) noexcept {
  const auto all =
      (static_cast<std::uint64_t>(z) << 42) ^ (static_cast<std::uint64_t>(y) << 21) ^ static_cast<std::uint64_t>(x);
  return unit(mix(mix(salt) ^ all));
}

float between(float a, float b, float share) noexcept { return a + (b - a) * share; }

/// Smooth hills, 0 to 1, that are `wavelength` samples apart.
float noise(std::uint64_t salt, std::int64_t wavelength, const Extent& at) noexcept {
  std::array<std::int64_t, 3> cell;
  std::array<float, 3> share;
  for (std::size_t i = 0; i < 3; ++i) {
    cell[i] = at[i] / wavelength;
    share[i] = smoothstep(0.0F, static_cast<float>(wavelength), static_cast<float>(at[i] % wavelength));
  }
  const auto row = [&](std::int64_t z, std::int64_t y) {
    return between(node(salt, cell[0] + z, cell[1] + y, cell[2]), node(salt, cell[0] + z, cell[1] + y, cell[2] + 1),
                   share[2]);
  };
  return between(between(row(0, 0), row(0, 1), share[1]), between(row(1, 0), row(1, 1), share[1]), share[0]);
}

/// Distance from a centre as a part of the radii, which are parts of the volume's size.
float distance(const Extent& at, const Extent& size, const std::array<float, 3>& centre,
               const std::array<float, 3>& radii) noexcept {
  float sum = 0.0F;
  for (std::size_t i = 0; i < 3; ++i) {
    const float place = (static_cast<float>(at[i]) + 0.5F) / static_cast<float>(size[i]);
    const float part = (place - centre[i]) / radii[i];
    sum += part * part;
  }
  return std::sqrt(sum);
}

float intensity(const Extent& at, const Extent& size, std::uint64_t seed) noexcept {
  const float grain = noise(seed + 1, 2, at);
  const float head = distance(at, size, {0.5F, 0.5F, 0.5F}, {0.48F, 0.47F, 0.46F});
  if (head >= 1.0F) return 12.0F * grain;
  const float texture = 60.0F * (grain - 0.5F) + 40.0F * (noise(seed + 2, 24, at) - 0.5F);
  if (head > 0.93F) return 760.0F + texture;
  if (head > 0.86F) return 90.0F + 0.3F * texture;
  // Folds: how deep the grey layer reaches differs from place to place.
  const float folds = noise(seed + 3, 9, at) - 0.5F;
  const float depth = head + 0.18F * folds;
  const float left = distance(at, size, {0.52F, 0.5F, 0.43F}, {0.07F, 0.14F, 0.03F});
  const float right = distance(at, size, {0.52F, 0.5F, 0.57F}, {0.07F, 0.14F, 0.03F});
  if (depth > 0.82F || std::min(left, right) < 1.0F) return 210.0F + 0.5F * texture;
  const float white = 1.0F - smoothstep(0.66F, 0.74F, depth);
  return between(560.0F, 880.0F, white) + texture;
}

NiftiHeader header_of(const Extent& size) {
  NiftiHeader header;
  header.size = {size[2], size[1], size[0]};
  constexpr int millimetres = 2;
  constexpr int scanner = 1;
  header.geometry.units = millimetres;
  header.geometry.sform_code = scanner;
  header.geometry.pixdim = {1.0, 1.0, 1.0, 1.0};
  for (std::size_t row = 0; row < 3; ++row) {
    header.geometry.srow[row * 4 + row] = 1.0;
    header.geometry.srow[row * 4 + 3] = -0.5 * static_cast<double>(header.size[row] - 1);
  }
  return header;
}

}  // namespace

void write_synthetic_volume(const std::filesystem::path& file, const Extent& size, std::uint64_t seed) {
  for (const std::int64_t side : size) {
    if (side < 1 || side > longest_side) throw ConfigError("a volume has 1 to 4,096 samples along each axis");
  }
  std::vector<std::int16_t> samples(static_cast<std::size_t>(count_of(size)));
  tbb::parallel_for(std::int64_t{0}, size[0], [&](std::int64_t z) {
    std::int16_t* to = samples.data() + z * size[1] * size[2];
    for (std::int64_t y = 0; y < size[1]; ++y) {
      for (std::int64_t x = 0; x < size[2]; ++x) {
        const float value = std::clamp(intensity({z, y, x}, size, seed), 0.0F, brightest);
        *to++ = static_cast<std::int16_t>(std::lrint(value));
      }
    }
  });
  write_nifti(file, header_of(size), ScalarType::int16, false, std::as_bytes(std::span<const std::int16_t>(samples)),
              made_up_mark);
}

}  // namespace slidestream::volume
