#include <algorithm>
#include <array>
#include <slidestream/statistic.hpp>
#include <utility>

#include "statistics/collector.hpp"
#include "statistics/entry.hpp"

namespace slidestream {

std::span<const StatisticEntry> statistic_entries() {
  static const std::array entries = {radial_statistic(), split_statistic()};
  return entries;
}

std::span<const Statistic> statistics() {
  static const std::vector<Statistic> all = [] {
    std::vector<Statistic> found;
    for (const StatisticEntry& entry : statistic_entries()) found.push_back(entry.statistic);
    return found;
  }();
  return all;
}

std::vector<PlacedStatistic> placed_statistics(const AnalysisConfig& config) {
  std::vector<PlacedStatistic> placed;
  std::size_t first = 0;
  for (const Statistic& statistic : statistics()) {
    if (std::ranges::find(config.statistics, statistic.name) == config.statistics.end()) continue;
    placed.push_back({&statistic, first, statistic.counters(config)});
    first += placed.back().count;
  }
  for (PlacedStatistic& one : placed) one.all = first;
  return placed;
}

std::size_t statistic_counters(const AnalysisConfig& config) {
  const auto placed = placed_statistics(config);
  return placed.empty() ? 0 : placed.front().all;
}

std::span<const Int128> counters_of(const PlacedStatistic& placed, const SpectrumSums& sums) {
  if (sums.counters.size() < placed.first + placed.count) return {};
  return std::span(sums.counters).subspan(placed.first, placed.count);
}

Findings findings_of(const PlacedStatistic& placed, const AnalysisConfig& config, const SpectrumSums& sums) {
  const std::span<const Int128> counters = counters_of(placed, sums);
  if (!counters.empty()) return placed.statistic->findings(config, sums, counters);
  return placed.statistic->findings(config, sums, std::vector<Int128>(placed.count));
}

std::vector<std::string> files_of(const Statistic& statistic) {
  AnalysisConfig config;
  config.statistics = {std::string(statistic.name)};
  std::vector<std::string> files;
  for (const Series& series : findings_of(placed_statistics(config).at(0), config, {}).series) {
    files.push_back(series.name + ".npy");
  }
  return files;
}

std::vector<std::string> statistic_files() {
  std::vector<std::string> files;
  for (const Statistic& statistic : statistics()) {
    for (std::string& file : files_of(statistic)) files.push_back(std::move(file));
  }
  return files;
}

Collectors::Collectors(const AnalysisConfig& config, const ValueLayout& layout)
    : counters_(statistic_counters(config)) {
  for (const PlacedStatistic& placed : placed_statistics(config)) {
    for (const StatisticEntry& entry : statistic_entries()) {
      if (entry.statistic.name != placed.statistic->name || entry.collector == nullptr) continue;
      collectors_.push_back({entry.collector(config, layout), placed.first});
    }
  }
}

void Collectors::flush(SpectrumSums& sums) const {
  if (empty()) return;
  sums.counters.resize(counters_);
  for (const Placed& placed : collectors_) placed.collector->flush(sums.counters.data() + placed.first);
}

}  // namespace slidestream
