#pragma once

#include "cuda/colour/convert_colour.hpp"

/// \file
/// The kernel of `make_every_colour`. Included where kernels are compiled, and by what runs them on the host.

namespace slidestream::cuda {
namespace {

struct EveryColourShape {
  static constexpr unsigned threads = 256;
  static constexpr unsigned blocks = DeviceColours::every_count / threads;
};

/// A thread a colour.
__global__ void __launch_bounds__(EveryColourShape::threads)
    make_every(const ColourProgram* program, std::uint32_t* every) {
  const std::uint32_t number = blockIdx.x * EveryColourShape::threads + threadIdx.x;
  every[number] = packed(converted_by_steps(*program, colour_at(number)));
}

}  // namespace
}  // namespace slidestream::cuda
