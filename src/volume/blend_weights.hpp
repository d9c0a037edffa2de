#pragma once

#include <array>
#include <cstdint>
#include <slidestream/config.hpp>
#include <vector>

#include "volume/fragments.hpp"

/// \file
/// How neighbouring fragments share the samples of an axis when they are blended.
///
/// A blend owns the weights of its grid's axes. The thread that makes the fusion makes them, and nobody changes them
/// later. So all threads that take planes read them without a lock.

namespace slidestream::volume {

constexpr int whole_weight = 256;  ///< of all fragments at a sample of an axis
constexpr int weight_bits = 24;    ///< of three axes

/// Fragments that count at a sample along an axis, with their weights. It owns nothing.
struct AxisWeights {
  std::array<std::int64_t, 2> fragment{};
  std::array<std::uint32_t, 2> weight{};
  int count = 1;  ///< of them
};

/// For each sample of an axis. Two neighbours are blended where they overlap; blends share by halves what three
/// fragments have. \param axis  one whose fragments leave no sample out
std::vector<AxisWeights> weights_at(const FragmentAxis& axis, StitchWeights weights);

}  // namespace slidestream::volume
