#pragma once

#include <cstddef>
#include <string>

#include <slidestream/error.hpp>
#include <slidestream/statistic.hpp>

#include "statistics/radial.hpp"
#include "statistics/split.hpp"

/// \file
/// Which statistics besides the distribution the GPU's engines make, and where their counters go, in plain C++.

namespace slidestream::cuda {

/// Of a configuration. Places are among `DeviceSums::counters`.
struct DeviceStatistics {
  std::size_t counters = 0;  ///< of all statistics
  int rings = 0;             ///< of the radial profile; 0: not asked for
  std::size_t first_ring = 0;
  int radial_bits = 0;  ///< values are counted times 2^radial_bits
  bool split = false;   ///< windows are told apart
  std::size_t tissue_clipped = 0;
  std::size_t tissue_histogram = 0;

  /// Has places for the statistics of `Statistic::computes_on_gpus`. A run with others doesn't come here.
  /// \throws ConfigError naming another one that is asked for.
  explicit DeviceStatistics(const AnalysisConfig& config) : counters(statistic_counters(config)) {
    for (const PlacedStatistic& placed : placed_statistics(config)) {
      if (placed.statistic->name == radial_name) {
        rings = static_cast<int>(placed.count);
        first_ring = placed.first;
        radial_bits = radial_fraction_bits(config.value);
      } else if (placed.statistic->name == split_name) {
        split = true;
        tissue_clipped = placed.first + split_clipped;
        tissue_histogram = placed.first + split_histogram;
      } else {
        throw ConfigError("analysis." + std::string(placed.statistic->name) +
                          " isn't computed on GPUs; expected false, or pipeline.backend = \"cpu\"");
      }
    }
  }
};

}  // namespace slidestream::cuda
