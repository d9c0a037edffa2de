#pragma once

#include <algorithm>
#include <cmath>

#include <slidestream/config.hpp>

/// \file
/// The header of the same name among the kernels, for the emulator.

namespace slidestream::cuda {

namespace {

template <ValueKind kind>
float value_of(float2 f) {
  const float magnitude = std::sqrt(f.x * f.x + f.y * f.y);
  if constexpr (kind == ValueKind::linear) return magnitude;
  if constexpr (kind == ValueKind::db) return 20.0F * std::log10(std::max(magnitude, 1e-6F));
  return 20.0F * std::log10(1.0F + magnitude);
}

}  // namespace

}  // namespace slidestream::cuda
