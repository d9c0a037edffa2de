#pragma once

#include <cstdint>
#include <span>

/// \file
/// Noise on lattices of hashed nodes. Only integer hashes and plain float arithmetic (no libm), so that a seed
/// gives the same pixels on every machine.

namespace slidestream::synth {

/// A well-mixed 64-bit hash of a 64-bit value (splitmix64's finaliser).
inline std::uint64_t mix(std::uint64_t value) noexcept {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31);
}

inline std::uint64_t hash(std::uint64_t salt, std::int64_t x, std::int64_t y) noexcept {
  return mix(mix(salt ^ static_cast<std::uint64_t>(x)) + static_cast<std::uint64_t>(y));
}

/// The top 24 bits as a float in [0, 1).
inline float unit(std::uint64_t bits) noexcept { return static_cast<float>(bits >> 40) * (1.0F / 16777216.0F); }

/// 0 below `from`, 1 above `to`, and a smooth cubic between.
inline float smoothstep(float from, float to, float value) noexcept {
  const float t = (value - from) / (to - from);
  if (t <= 0.0F) return 0.0F;
  if (t >= 1.0F) return 1.0F;
  return t * t * (3.0F - 2.0F * t);
}

/// A square of the picture to fill. A `repeatable` patch lies nowhere: its lattices fit its side, and the nodes on its
/// border are the same in all such patches, so that any two of them join without a seam.
struct Patch {
  std::int64_t x = 0;  ///< left edge, pixels; 0 when repeatable
  std::int64_t y = 0;
  int size = 0;            ///< side, pixels
  std::uint64_t salt = 0;  ///< tells repeatable patches apart
  bool repeatable = false;
};

enum class NoiseShape {
  plain,   ///< smooth hills about 0.5, mostly within 0 to 1
  ridged,  ///< 1 along the lines where the hills cross a half: threads and webs
};

/// Adds `amplitude` x noise whose hills are `wavelength` pixels apart to `out` (size x size). `repeatable` patches have
/// at least `minimum_cells` hills across.
void add_noise(const Patch& patch, std::uint64_t salt, int wavelength, NoiseShape shape, float amplitude,
               std::span<float> out, int minimum_cells = 1);

/// Smooth noise of another kind (hashed heights) at one point of the whole picture, 0 to 1.
float noise_at(std::uint64_t salt, std::int64_t wavelength, std::int64_t x, std::int64_t y) noexcept;

}  // namespace slidestream::synth
