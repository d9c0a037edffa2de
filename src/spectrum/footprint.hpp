#pragma once

#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream {

/// Windows, and around them the pixels that smoothing reads.
constexpr Footprint spectrum_footprint(const AnalysisConfig& analysis) noexcept {
  const std::int64_t radius = analysis.smoothing_radius;
  return {{analysis.window, analysis.window}, {analysis.stride, analysis.stride}, {radius, radius, radius, radius}};
}

}  // namespace slidestream
