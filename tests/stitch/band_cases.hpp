#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <slidestream/stitch.hpp>

/// \file
/// Tiles with values, for those who put them together elsewhere than on the host.

namespace slidestream::test {

struct BandCase {
  StitchPlan plan;
  NetworkOutput output;
  StitchWeights weights = StitchWeights::tent;
  std::vector<std::vector<float>> values;  ///< of tiles, in row order; of an absent one nothing
};

/// Some tiles are absent, and a few have a value that isn't a finite number, or is outside of what classes may have.
inline BandCase random_band(std::mt19937& random, std::int64_t most_width, std::int64_t most_height) {
  const auto in = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  BandCase made;
  const std::int64_t scale = in(0, 2) == 0 ? 2 : 1;
  const std::int64_t tile = in(1, 24);
  made.plan = plan_stitching({in(1, most_width), in(1, most_height)}, tile * scale, in(0, tile / 2) * scale, scale,
                             in(0, 1) == 0 ? StitchEdge::shift : StitchEdge::mirror);
  made.weights =
      std::array{StitchWeights::tent, StitchWeights::cosine, StitchWeights::none}[static_cast<std::size_t>(in(0, 2))];
  made.output.kind = in(0, 4) == 0 ? NetworkOutput::Kind::classes : NetworkOutput::Kind::image;
  made.output.channels = std::array{1, 3, 5, 16}[static_cast<std::size_t>(in(0, 3))];
  made.output.scale = static_cast<int>(scale);
  made.output.sample = in(0, 1) == 0 ? SampleType::uint8 : SampleType::uint16;
  made.output.activation = std::array{NetworkActivation::none, NetworkActivation::softmax,
                                      NetworkActivation::sigmoid}[static_cast<std::size_t>(in(0, 2))];
  // Values of classes lie inside, as others make a tile absent.
  made.output.low = made.output.refuses_outside()                       ? -2.0F
                    : made.output.activation == NetworkActivation::none ? -1.0F
                                                                        : 0.0F;
  made.output.high = made.output.refuses_outside()                       ? 4.0F
                     : made.output.activation == NetworkActivation::none ? 3.0F
                                                                         : 1.0F;
  made.output.ignore = static_cast<int>(in(made.output.channels, 255));
  const bool holes = in(0, 1) == 0;
  const bool odd = in(0, 3) == 0;
  constexpr std::array strange = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()};
  made.values.resize(static_cast<std::size_t>(made.plan.tiles()));
  for (std::vector<float>& values : made.values) {
    if (holes && in(0, 3) == 0) continue;
    values.resize(static_cast<std::size_t>(made.plan.x.tile * made.plan.y.tile * made.output.channels));
    for (float& value : values) value = static_cast<float>(in(0, 6000)) / 1000.0F - 2.0F;
    if (odd && in(0, 2) == 0) {
      values[static_cast<std::size_t>(in(0, static_cast<std::int64_t>(values.size()) - 1))] =
          strange[static_cast<std::size_t>(in(0, 3))];
    }
  }
  return made;
}

}  // namespace slidestream::test
