#pragma once

#include <nlohmann/json_fwd.hpp>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream {

/// What the statistics that a configuration asks for come to, by name: {"title", "figures": {NAME: number or null},
/// "series": {NAME: {"unit", "axis", "first", "step", "values" or "counts": [...]}}}.
nlohmann::ordered_json statistics_json(const AnalysisConfig& config, const SpectrumSums& sums);

}  // namespace slidestream
