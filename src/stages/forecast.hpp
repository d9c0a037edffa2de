#pragma once

#include <string>
#include <vector>

#include <slidestream/forecast.hpp>

#include "stages/run/batch.hpp"

namespace slidestream {

/// `forecast_run` of these operators in place of those that the configuration names.
RunForecast forecast_operators(const Config& config, const Operators& operators, const std::vector<std::string>& slides,
                               const ForecastOptions& options);

}  // namespace slidestream
