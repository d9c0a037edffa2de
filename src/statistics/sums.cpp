#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>

namespace slidestream {

namespace {

/// Rounded once, halves to even; exact beyond 2^53, where doubles are whole numbers already.
Int128 to_fixed_point(double value, int fraction_bits) noexcept {
  constexpr double fits_64_bits = 0x1p62;
  const double scaled = value * static_cast<double>(std::uint64_t{1} << fraction_bits);
  if (std::abs(scaled) < fits_64_bits) return std::llrint(scaled);
  return static_cast<Int128>(std::nearbyint(std::ldexp(value, fraction_bits)));
}

double from_fixed_point(Int128 value, int fraction_bits) noexcept {
  return std::ldexp(static_cast<double>(value), -fraction_bits);
}

/// The smallest value that a coefficient can have.
double smallest_value(ValueKind kind) noexcept {
  constexpr double floor_of_db = -120.0;  // 20 log10(1e-6)
  return kind == ValueKind::db ? floor_of_db : 0.0;
}

}  // namespace

void SpectrumSums::add_window(double value_sum, double square_sum, std::uint64_t value_count) noexcept {
  sum += to_fixed_point(value_sum, sum_fraction_bits);
  sum_of_squares += to_fixed_point(square_sum, square_fraction_bits);
  values += value_count;
  ++windows;
}

SpectrumSums& SpectrumSums::operator+=(const SpectrumSums& other) {
  if (histogram.size() != other.histogram.size()) {
    throw std::invalid_argument("histograms of " + std::to_string(histogram.size()) + " and " +
                                std::to_string(other.histogram.size()) + " bins can't be added");
  }
  for (std::size_t bin = 0; bin < histogram.size(); ++bin) histogram[bin] += other.histogram[bin];
  windows += other.windows;
  values += other.values;
  clipped += other.clipped;
  if (__builtin_add_overflow(sum, other.sum, &sum) ||
      __builtin_add_overflow(sum_of_squares, other.sum_of_squares, &sum_of_squares)) {
    throw std::overflow_error("sums of more than 128 bits");
  }
  if (counters.empty()) counters.resize(other.counters.size());
  if (!other.counters.empty() && counters.size() != other.counters.size()) {
    throw std::invalid_argument("statistics of " + std::to_string(counters.size()) + " and " +
                                std::to_string(other.counters.size()) + " counters can't be added");
  }
  for (std::size_t i = 0; i < other.counters.size(); ++i) {
    if (__builtin_add_overflow(counters[i], other.counters[i], &counters[i])) {
      throw std::overflow_error("counters of more than 128 bits");
    }
  }
  return *this;
}

void SpectrumSums::reset(std::size_t bins) {
  histogram.assign(bins, 0);
  std::fill(counters.begin(), counters.end(), 0);
  windows = values = clipped = 0;
  sum = sum_of_squares = 0;
}

double SpectrumSums::mean() const noexcept {
  return values == 0 ? 0.0 : from_fixed_point(sum, sum_fraction_bits) / static_cast<double>(values);
}

double SpectrumSums::standard_deviation() const noexcept {
  if (values == 0) return 0.0;
  const double average = mean();
  const double square = from_fixed_point(sum_of_squares, square_fraction_bits) / static_cast<double>(values);
  return std::sqrt(std::max(square - average * average, 0.0));
}

double SpectrumSums::percentile(double p, const AnalysisConfig& analysis) const noexcept {
  const auto& [low, high] = analysis.range;
  return percentile(p, low, high, low > smallest_value(analysis.value));
}

double SpectrumSums::percentile(double p, double low, double high, bool can_be_below) const noexcept {
  const auto holds_clipped = [&](std::size_t bin) {
    return clipped > 0 && ((bin == 0 && can_be_below) || bin + 1 == histogram.size());
  };
  std::uint64_t total = 0;
  for (const std::uint64_t count : histogram) total += count;
  if (total == 0) return low;
  const double width = (high - low) / static_cast<double>(histogram.size());
  const double target = std::clamp(p, 0.0, 1.0) * static_cast<double>(total);
  std::uint64_t below = 0;
  std::size_t last = 0;  // the last bin that holds anything
  for (std::size_t bin = 0; bin < histogram.size(); ++bin) {
    const std::uint64_t count = histogram[bin];
    if (count == 0) continue;
    if (static_cast<double>(below + count) >= target) {
      if (holds_clipped(bin)) return std::numeric_limits<double>::quiet_NaN();
      const double share = (target - static_cast<double>(below)) / static_cast<double>(count);
      return low + width * (static_cast<double>(bin) + std::max(share, 0.0));
    }
    below += count;
    last = bin;
  }
  if (holds_clipped(last)) return std::numeric_limits<double>::quiet_NaN();
  return low + width * static_cast<double>(last + 1);
}

}  // namespace slidestream
