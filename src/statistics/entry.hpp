#pragma once

#include <memory>

#include <slidestream/statistic.hpp>

/// \file
/// The list of statistics, with what the engines want of them. What a statistic's source has for itself is in an
/// unnamed namespace within one of the statistic's name: builds compile several sources as one, and each has its
/// `counters`.

namespace slidestream {

class ValueCollector;
struct ValueLayout;

/// One of the list.
struct StatisticEntry {
  Statistic statistic;
  /// What it makes of each value on the CPU; null: it needs none of them.
  std::unique_ptr<ValueCollector> (*collector)(const AnalysisConfig& config, const ValueLayout& layout) = nullptr;
};

/// In the order of `statistics`.
std::span<const StatisticEntry> statistic_entries();

StatisticEntry radial_statistic();
StatisticEntry split_statistic();

}  // namespace slidestream
