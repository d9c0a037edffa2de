#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>
#include <slidestream/statistic.hpp>

/// \file
/// The split into tissue and background: the distribution of the windows that are tissue, and by difference from all
/// that of the others.

namespace slidestream {

inline constexpr std::string_view split_name = "split";

/// Places of its counters: windows, values, clipped, sum, sum of squares, then the histogram.
inline constexpr std::size_t split_clipped = 2;
inline constexpr std::size_t split_histogram = 5;

/// The split among a configuration's statistics; `statistic` is null where it isn't asked for.
PlacedStatistic split_of(const AnalysisConfig& config);

/// Adds windows of tissue, which are among `all`, to the split's counters there. A part of their sums does, too, such
/// as those without a histogram.
void count_tissue(SpectrumSums& all, const SpectrumSums& tissue, const PlacedStatistic& split);

/// The distributions of both. \param counters the split's
SpectrumSums tissue_sums(const AnalysisConfig& config, std::span<const Int128> counters);
SpectrumSums background_sums(const SpectrumSums& all, const SpectrumSums& tissue);

}  // namespace slidestream
