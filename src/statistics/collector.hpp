#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

#include "statistics/entry.hpp"

/// \file
/// How statistics see each value of a window on the CPU: an engine says once what its values stand for, in the order
/// that it has them in, and then hands them over as they are.

namespace slidestream {

/// A place among a window's values.
struct ValuePlace {
  int kx = 0;  ///< signed, from -N/2 + 1 to N/2
  int ky = 0;
  int weight = 0;  ///< 2: the coefficient and its mirror image; 1: one that is its own, or has a place; 0: nothing
};

/// The values of a window as an engine has them.
struct ValueLayout {
  std::size_t places = 0;
  std::function<ValuePlace(std::size_t)> place;  ///< asked while collectors are made
  double scale = 1.0;                            ///< a number x of the engine's is the value scale x + offset
  double offset = 0.0;
};

/// k as a signed frequency of a transform of `side` points.
constexpr int signed_frequency(std::size_t k, std::size_t side) noexcept {
  return k <= side / 2 ? static_cast<int>(k) : static_cast<int>(k) - static_cast<int>(side);
}

/// Adds up one statistic, on one thread. What a window gives depends on its values alone.
class ValueCollector {
 public:
  virtual ~ValueCollector() = default;
  /// Values of a window at places [first, first + count). All of them are given once, in any order.
  virtual void add(const float* values, std::size_t first, std::size_t count) = 0;
  /// All of a window's values were given.
  virtual void end_window() = 0;
  /// Adds what was collected to the statistic's counters, and forgets it.
  virtual void flush(Int128* counters) = 0;
};

/// Those of all statistics that a configuration asks for.
class Collectors {
 public:
  Collectors(const AnalysisConfig& config, const ValueLayout& layout);

  /// Whether nobody wants to see values.
  bool empty() const noexcept { return collectors_.empty(); }
  void add(const float* values, std::size_t first, std::size_t count) {
    for (const Placed& placed : collectors_) placed.collector->add(values, first, count);
  }
  void end_window() {
    for (const Placed& placed : collectors_) placed.collector->end_window();
  }
  void flush(SpectrumSums& sums) const;

 private:
  struct Placed {
    std::unique_ptr<ValueCollector> collector;
    std::size_t first = 0;  ///< of its counters
  };
  std::vector<Placed> collectors_;
  std::size_t counters_;
};

}  // namespace slidestream
