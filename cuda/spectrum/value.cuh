#pragma once

#include <slidestream/config.hpp>

/// \file
/// A coefficient's value, for kernels that have spectra in memory.

namespace slidestream::cuda {

namespace {

/// With the hardware's approximations, good to 1e-5 dB: the spectra's own rounding weighs more.
template <ValueKind kind>
__device__ float value_of(float2 f) {
  const float power = fmaf(f.x, f.x, f.y * f.y);
  float magnitude;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(magnitude) : "f"(power));
  if constexpr (kind == ValueKind::linear) return magnitude;
  constexpr float decibels_per_octave = 6.0205999132796239F;  // 20 log10(2)
  if constexpr (kind == ValueKind::db) return decibels_per_octave * __log2f(fmaxf(magnitude, 1e-6F));
  return decibels_per_octave * __log2f(1.0F + magnitude);
}

}  // namespace

}  // namespace slidestream::cuda
