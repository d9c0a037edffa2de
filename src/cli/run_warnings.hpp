#pragma once

#include <cstddef>
#include <string>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

/// \file
/// Lines about doubtful results, which a run ends with.

namespace slidestream::cli {

void warn_of_clipped(const SpectrumSums& sums);

/// \param slides  with clamped values \param most  the largest share of one's values \param input  "slide" or "volume"
void warn_of_clamped(const Config& config, std::size_t slides, double most, const std::string& input = "slide");

/// \param slides  of which a sigmoid made classes equal \param most  the largest share of one's pixels
void warn_of_saturated(const Config& config, std::size_t slides, double most);

}  // namespace slidestream::cli
