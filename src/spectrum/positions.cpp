#include "spectrum/positions.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "spectrum/engines.hpp"

namespace slidestream {

namespace {

/// log2(x) - (x - 1) for 1 <= x < 2, coefficients of 1 to x^5: minimax, exact at both ends, off by at most 1.6e-5.
constexpr std::array<double, 6> log2_polynomial = {-1.8053443920525887, 4.106976495359516,   -3.568859776993264,
                                                   1.6413996568381872,  -0.4193210447162697, 0.04514906156441974};

/// Highest value of a window of 8-bit pixels, in dB: all white, 20 log10(1 + 255 N^2), rounded up to half a dB.
double highest_value(int window) { return 0.5 * std::ceil(40.0 * std::log10(1.0 + 255.0 * window * window)); }

/// Of a bin: values on a bin's lower edge (0 dB above all) belong to it, whatever the last bit of the arithmetic says.
constexpr double edge_allowance = 0x1p-13;

}  // namespace

Positions::Positions(const AnalysisConfig& config) {
  const double low = config.range[0];
  const double high = config.range[1];
  const double bins_per_decibel = config.bins / (high - low);
  const double bins_per_octave = 20.0 * std::numbers::ln2 / std::numbers::ln10 * bins_per_decibel;
  bins = static_cast<std::size_t>(config.bins);
  half_bin = 0.5 - edge_allowance;
  value_per_position = 1.0 / bins_per_decibel;

  constants.per_bit = static_cast<float>(bins_per_octave * 0x1p-23);
  constants.constant = static_cast<float>(bins_per_octave * log2_polynomial[0] - half_bin);
  for (std::size_t i = 0; i < constants.polynomial.size(); ++i) {
    constants.polynomial[i] = static_cast<float>(bins_per_octave * log2_polynomial[i + 1]);
  }
  constants.any_range = low != 0.0 || high < highest_value(config.window);
  constants.low = static_cast<float>(low * bins_per_decibel);
  constants.end = static_cast<float>(config.bins);
  constants.nothing = config.bins + 2;
}

bool positions_take(const AnalysisConfig& config) {
  const double bins_per_decibel = config.bins / (config.range[1] - config.range[0]);
  return config.value == ValueKind::log1p_db && config.bins <= max_fast_bins &&
         // Positions stay small enough for float32.
         bins_per_decibel <= 400.0 && std::abs(config.range[0]) <= 1000.0;
}

void add_window(SpectrumSums& sums, float* cell, const PositionSums& of_positions, std::uint64_t count,
                const Positions& positions) {
  const double values = static_cast<double>(count);
  const double shift = positions.half_bin;
  const double unit = positions.value_per_position;
  const double value_sum = (of_positions.sum + values * shift) * unit;
  const double square_sum =
      (of_positions.squares + 2.0 * shift * of_positions.sum + values * shift * shift) * unit * unit;
  sums.add_window(value_sum, square_sum, count);
  store_moments(cell, value_sum, square_sum, values);
}

ValueLayout kept_layout(std::size_t side, std::size_t lanes, const Positions& positions) {
  const std::size_t half = side / 2;
  const std::size_t in_groups = (half + lanes - 1) / lanes * lanes * side;
  ValueLayout layout;
  layout.places = in_groups + 2 * side;
  layout.scale = positions.value_per_position;
  layout.offset = positions.half_bin * positions.value_per_position;
  layout.place = [=](std::size_t i) -> ValuePlace {
    if (i >= in_groups) {
      const std::size_t column = (i - in_groups) / side * half;
      return {static_cast<int>(column), signed_frequency((i - in_groups) % side, side), 1};
    }
    const std::size_t column = i / (side * lanes) * lanes + i % lanes;
    const int weight = column == 0 || column >= half ? 0 : 2;
    return {static_cast<int>(column), signed_frequency(i / lanes % side, side), weight};
  };
  return layout;
}

void flush_counters(SpectrumSums& sums, Counters& counters, std::size_t bins) {
  std::uint16_t* halved = counters.halved.data();
  std::uint32_t* whole = counters.whole.data();
  for (std::size_t i = 0; i < bins + 2; ++i) {
    std::uint64_t total = 0;
    for (std::size_t copy = 0; copy < counter_copies; ++copy) total += halved[i * counter_copies + copy];
    total = 2 * total + whole[i];
    const std::size_t bin = std::clamp<std::size_t>(i, 1, bins) - 1;
    sums.histogram[bin] += total;
    if (i == 0 || i == bins + 1) sums.clipped += total;
  }
  std::fill_n(halved, counter_copies * (bins + counters_beyond_bins), std::uint16_t{0});
  std::fill_n(whole, bins + counters_beyond_bins, 0U);
}

}  // namespace slidestream
