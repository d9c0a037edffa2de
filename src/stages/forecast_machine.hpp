#pragma once

#include <cstddef>

#include <slidestream/forecast.hpp>

#include "planning/device_sizing.hpp"
#include "planning/operator_needs.hpp"

namespace slidestream {

/// The lanes of a run and the limits of its slots, as a forecast needs them.
struct ForecastMachine {
  SlotLimits limits;
  std::size_t lanes = 1;
  bool gpu = false;
  DeviceWork work;  ///< for GPUs; empty without
};

/// Decides whether the run would compute on GPUs, and enters the backend, slots and device memory into `forecast`.
/// \param slides  number of slides of the run
/// \throws ConfigError  a GPU is required or assumed, and the configuration can't use one.
ForecastMachine choose_machine(RunForecast& forecast, const Config& config, const Operators& all_operators,
                               std::size_t slides, const ForecastOptions& options);

}  // namespace slidestream
