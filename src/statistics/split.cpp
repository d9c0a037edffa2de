#include "statistics/split.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "statistics/entry.hpp"

namespace slidestream {

namespace split {
namespace {

std::size_t counters(const AnalysisConfig& config) { return split_histogram + static_cast<std::size_t>(config.bins); }

void describe(Findings& findings, const AnalysisConfig& config, const std::string& name, SpectrumSums sums) {
  const auto& [low, high] = config.range;
  const auto add = [&](const char* figure, double value) {
    const bool is_known = sums.windows > 0 && !std::isnan(value);
    findings.figures.push_back({name + figure, is_known ? std::optional(value) : std::nullopt});
  };
  findings.figures.push_back({name + "_windows", static_cast<double>(sums.windows), true});
  const bool is_linear = config.value == ValueKind::linear;
  add(is_linear ? "_mean" : "_mean_db", sums.mean());
  add(is_linear ? "_std" : "_std_db", sums.standard_deviation());
  add("_p05", sums.percentile(0.05, config));
  add("_p50", sums.percentile(0.5, config));
  add("_p95", sums.percentile(0.95, config));
  Series series;
  series.name = name + "_histograms";
  series.unit = "values";
  series.axis = config.value == ValueKind::linear ? "|F|" : "dB";
  series.first = low;
  series.step = (high - low) / config.bins;
  series.counts = std::move(sums.histogram);
  findings.series.push_back(std::move(series));
}

Findings findings(const AnalysisConfig& config, const SpectrumSums& sums, std::span<const Int128> of_split) {
  const SpectrumSums tissue = tissue_sums(config, of_split);
  Findings found;
  describe(found, config, "tissue", tissue);
  describe(found, config, "background", background_sums(sums, tissue));
  return found;
}

}  // namespace
}  // namespace split

PlacedStatistic split_of(const AnalysisConfig& config) {
  for (const PlacedStatistic& placed : placed_statistics(config)) {
    if (placed.statistic->name == split_name) return placed;
  }
  return {};
}

void count_tissue(SpectrumSums& all, const SpectrumSums& tissue, const PlacedStatistic& split) {
  all.counters.resize(split.all);
  Int128* to = all.counters.data() + split.first;
  to[0] += static_cast<Int128>(tissue.windows);
  to[1] += static_cast<Int128>(tissue.values);
  to[split_clipped] += static_cast<Int128>(tissue.clipped);
  to[3] += tissue.sum;
  to[4] += tissue.sum_of_squares;
  for (std::size_t bin = 0; bin < tissue.histogram.size(); ++bin) {
    to[split_histogram + bin] += static_cast<Int128>(tissue.histogram[bin]);
  }
}

SpectrumSums tissue_sums(const AnalysisConfig& config, std::span<const Int128> counters) {
  SpectrumSums tissue;
  tissue.windows = static_cast<std::uint64_t>(counters[0]);
  tissue.values = static_cast<std::uint64_t>(counters[1]);
  tissue.clipped = static_cast<std::uint64_t>(counters[split_clipped]);
  tissue.sum = counters[3];
  tissue.sum_of_squares = counters[4];
  tissue.histogram.resize(static_cast<std::size_t>(config.bins));
  for (std::size_t bin = 0; bin < tissue.histogram.size(); ++bin) {
    tissue.histogram[bin] = static_cast<std::uint64_t>(counters[split_histogram + bin]);
  }
  return tissue;
}

SpectrumSums background_sums(const SpectrumSums& all, const SpectrumSums& tissue) {
  SpectrumSums background = all;
  background.counters.clear();
  background.histogram.resize(tissue.histogram.size());
  for (std::size_t bin = 0; bin < tissue.histogram.size(); ++bin) background.histogram[bin] -= tissue.histogram[bin];
  background.windows -= tissue.windows;
  background.values -= tissue.values;
  background.clipped -= tissue.clipped;
  background.sum -= tissue.sum;
  background.sum_of_squares -= tissue.sum_of_squares;
  return background;
}

StatisticEntry split_statistic() {
  return {{split_name, "Tissue and background",
           "Also counts windows with at least tissue.share of tissue, and others, apart: in slides.csv, "
           "tissue_histograms.npy and background_histograms.npy. Memory: 16 bytes per bin, slide and thread. "
           "Default false.",
           "tissue", split::counters, split::findings, /*computes_on_gpus=*/true}};
}

}  // namespace slidestream
