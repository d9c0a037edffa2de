#include "statistics/radial.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "statistics/collector.hpp"
#include "statistics/entry.hpp"

namespace slidestream {

namespace radial {
namespace {

/// Decibels of windows up to 4096 stay below 200 in size: so many windows fit 32 bits.
constexpr int decibel_bits = radial_fraction_bits(ValueKind::log1p_db);
constexpr int magnitude_bits = radial_fraction_bits(ValueKind::linear);
constexpr std::uint32_t most_pending = (std::uint32_t{1} << (31 - decibel_bits)) / 200 - 1;

/// Each place has a sum of its own, which takes no time to find; places come to rings when 32 bits could be full.
class DecibelCollector final : public ValueCollector {
 public:
  DecibelCollector(const AnalysisConfig& config, const ValueLayout& layout)
      : scale_(static_cast<float>(std::ldexp(layout.scale, decibel_bits))),
        offset_(static_cast<float>(std::ldexp(layout.offset, decibel_bits))),
        of_place_(layout.places),
        cells_(layout.places),
        rings_(2 * radial_rings(config.window) + 1) {
    const std::size_t nowhere = rings_.size() - 1;
    for (std::size_t i = 0; i < layout.places; ++i) {
      const ValuePlace place = layout.place(i);
      const std::size_t ring = radial_ring_of(place.kx, place.ky);
      const bool counts = place.weight > 0 && ring < radial_rings(config.window);
      cells_[i] = static_cast<std::uint16_t>(counts ? 2 * ring + static_cast<std::size_t>(place.weight - 1) : nowhere);
    }
  }

  void add(const float* values, std::size_t first, std::size_t count) override {
    std::int32_t* to = of_place_.data() + first;
    for (std::size_t i = 0; i < count; ++i) {
      const float value = values[i] * scale_ + offset_;
      to[i] += static_cast<std::int32_t>(value + std::copysign(0.5F, value));
    }
  }

  void end_window() override {
    if (++pending_ == most_pending) drain();
  }

  void flush(Int128* counters) override {
    drain();
    for (std::size_t ring = 0; 2 * ring + 1 < rings_.size(); ++ring) {
      counters[ring] += Int128{rings_[2 * ring]} + 2 * Int128{rings_[2 * ring + 1]};
    }
    std::fill(rings_.begin(), rings_.end(), 0);
  }

 private:
  void drain() {
    for (std::size_t i = 0; i < of_place_.size(); ++i) {
      rings_[cells_[i]] += of_place_[i];
      of_place_[i] = 0;
    }
    pending_ = 0;
  }

  float scale_;
  float offset_;
  std::vector<std::int32_t> of_place_;
  std::vector<std::uint16_t> cells_;  ///< by place: 2 x ring + weight - 1
  std::vector<std::int64_t> rings_;   ///< by cell; the last is of no ring
  std::uint32_t pending_ = 0;         ///< windows in `of_place_`
};

/// |F| itself needs more bits.
class MagnitudeCollector final : public ValueCollector {
 public:
  MagnitudeCollector(const AnalysisConfig& config, const ValueLayout& layout)
      : layout_(layout), rings_(radial_rings(config.window)), cells_(layout.places) {
    for (std::size_t i = 0; i < layout.places; ++i) {
      const ValuePlace place = layout.place(i);
      const std::size_t ring = radial_ring_of(place.kx, place.ky);
      if (place.weight > 0 && ring < rings_.size()) cells_[i] = {static_cast<std::uint16_t>(ring), place.weight};
    }
  }

  void add(const float* values, std::size_t first, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(values[i]) * layout_.scale + layout_.offset;
      const Cell& cell = cells_[first + i];
      rings_[cell.ring] += Int128{cell.weight} * std::llrint(std::ldexp(value, magnitude_bits));
    }
  }
  void end_window() override {}

  void flush(Int128* counters) override {
    for (std::size_t ring = 0; ring < rings_.size(); ++ring) counters[ring] += std::exchange(rings_[ring], 0);
  }

 private:
  struct Cell {
    std::uint16_t ring = 0;
    int weight = 0;
  };
  ValueLayout layout_;
  std::vector<Int128> rings_;
  std::vector<Cell> cells_;
};

std::unique_ptr<ValueCollector> make_collector(const AnalysisConfig& config, const ValueLayout& layout) {
  if (config.value == ValueKind::linear) return std::make_unique<MagnitudeCollector>(config, layout);
  return std::make_unique<DecibelCollector>(config, layout);
}

/// Counted once for each size of window.
const std::vector<std::uint64_t>& counts_of(int window) {
  static std::mutex mutex;
  static std::map<int, std::vector<std::uint64_t>> known;
  const std::lock_guard lock(mutex);
  std::vector<std::uint64_t>& counts = known[window];
  if (counts.empty()) counts = radial_ring_counts(window);
  return counts;
}

std::size_t counters(const AnalysisConfig& config) { return radial_rings(config.window); }

Findings findings(const AnalysisConfig& config, const SpectrumSums& sums, std::span<const Int128> sums_of_rings) {
  const std::vector<std::uint64_t>& counts = counts_of(config.window);
  Series series;
  series.name = radial_name;
  series.unit = config.value == ValueKind::linear ? "|F|" : "dB";
  series.axis = "|k|, cycles a window";
  for (std::size_t ring = 0; ring < sums_of_rings.size(); ++ring) {
    const double values = static_cast<double>(counts[ring]) * static_cast<double>(sums.windows);
    series.values.push_back(
        values > 0.0
            ? std::ldexp(static_cast<double>(sums_of_rings[ring]), -radial_fraction_bits(config.value)) / values
            : std::numeric_limits<double>::quiet_NaN());
  }
  return {{}, {std::move(series)}};
}

}  // namespace
}  // namespace radial

std::size_t radial_ring_of(int kx, int ky) noexcept {
  const double x = kx;
  const double y = ky;
  return static_cast<std::size_t>(std::lround(std::sqrt(x * x + y * y)));
}

std::vector<std::uint64_t> radial_ring_counts(int window) {
  const int half = window / 2;
  std::vector<std::uint64_t> counts(radial_rings(window));
  // One quarter stands for all: 0 and N/2 are their own mirror images.
  const auto times = [half](int k) { return k == 0 || k == half ? 1U : 2U; };
  for (int ky = 0; ky <= half; ++ky) {
    for (int kx = 0; kx <= half; ++kx) {
      const std::size_t ring = radial_ring_of(kx, ky);
      if (ring >= counts.size()) break;
      counts[ring] += times(kx) * times(ky);
    }
  }
  return counts;
}

StatisticEntry radial_statistic() {
  return {{radial_name, "Radial profile",
           "Writes radial.npy: means over rings of |k|, rounded to 0 to N/2. Memory: 6 bytes per coefficient of a "
           "window and thread, 8 with linear. Default false.",
           "", radial::counters, radial::findings, /*computes_on_gpus=*/true},
          radial::make_collector};
}

}  // namespace slidestream
