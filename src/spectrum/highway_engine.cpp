#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "spectrum/engines.hpp"
#include "spectrum/highway_layout.hpp"
#include "spectrum/smoothing.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "spectrum/highway_engine.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first
#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR
#include "spectrum/column_transform-inl.hpp"
#include "spectrum/row_transform-inl.hpp"
#include "spectrum/smoother-inl.hpp"
#endif

// The walk: a band of a few window columns, block row by block row (128 rows) downwards. Each block row is smoothed and
// its rows transformed once, two rows at a time; the row spectra of the newest two stay in the L2 cache, and from them
// each window's columns are transformed, a group of columns at a time, one lane each.

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

// Without vectors the plain engine is faster: highway_engine_takes says no, and this is never called.
void RunBand(SpectrumSums& /*sums*/, const MapView& /*map*/, const LuminancePlane& /*plane*/,
             const WindowBlock& /*band*/, FastWorkspace& /*work*/, const FastParameters& /*parameters*/) {}

#else

/// Adds what the counters hold to the histogram, and empties them.
void flush_counters(SpectrumSums& sums, FastWorkspace& work, std::size_t bins) {
  std::uint16_t* counters = work.counters.data();
  std::uint32_t* edge = work.edge_counters.data();
  for (std::size_t i = 0; i < bins + 2; ++i) {
    std::uint64_t total = 0;
    for (std::size_t copy = 0; copy < counter_copies; ++copy) total += counters[i * counter_copies + copy];
    total = 2 * total + edge[i];
    const std::size_t bin = std::clamp<std::size_t>(i, 1, bins) - 1;
    sums.histogram[bin] += total;
    if (i == 0 || i == bins + 1) sums.clipped += total;
  }
  std::fill_n(counters, counter_copies * (bins + counters_beyond_bins), std::uint16_t{0});
  std::fill_n(edge, bins + counters_beyond_bins, 0U);
  work.pending_windows = 0;
}

/// One window from the row spectra of its two block rows.
template <bool any_range>
PositionSums transform_window(FastWorkspace& work, const float* spectra, std::size_t parity,
                              const FastParameters& parameters) {
  PositionSums sums;
  float* half = work.column_half.data();
  float* edge = work.edge_columns.data();
  std::int32_t* offsets = work.offsets.data();
  std::uint16_t* counters = work.counters.data();
  for (std::size_t group = 0; group < groups; ++group) {
    const float* of_group = spectra + group * group_pitch;
    transform_columns_first(half, of_group + (1 - parity) * block_pitch, of_group + parity * block_pitch, twiddles());
    if (group == 0) {
      transform_columns_second<true, any_range>(sums, edge, offsets, counters, half, parameters.position);
    } else {
      transform_columns_second<false, any_range>(sums, edge, offsets, counters, half, parameters.position);
    }
  }
  sums.sum *= 2.0;
  sums.squares *= 2.0;
  finish_edge_columns<any_range>(sums, work.edge_counters.data(), edge, parameters.position);
  return sums;
}

/// A window's moments, from those of its positions.
void add_window(SpectrumSums& sums, float* cell, const PositionSums& of_positions, const FastParameters& parameters) {
  constexpr double count = fast_window * fast_window;
  const double shift = parameters.half_bin;
  const double unit = parameters.value_per_position;
  const double value_sum = (of_positions.sum + count * shift) * unit;
  const double square_sum =
      (of_positions.squares + 2.0 * shift * of_positions.sum + count * shift * shift) * unit * unit;
  sums.add_window(value_sum, square_sum, fast_window * fast_window);
  store_moments(cell, value_sum, square_sum, count);
}

void RunBand(SpectrumSums& sums, const MapView& map, const LuminancePlane& plane, const WindowBlock& band,
             FastWorkspace& work, const FastParameters& parameters) {
  const std::int64_t begin = band.first_column * fast_stride;
  const std::int64_t width = (band.columns + 1) * fast_stride;
  const std::int64_t bottom = (band.first_row + band.rows + 1) * fast_stride;
  float* first = work.smoothed.data();
  float* second = first + smoothed_pitch;
  float* pairs = work.row_pairs.data();
  const auto window_spectra = [&](std::int64_t column) {
    return work.row_spectra.data() + static_cast<std::size_t>(column) * window_pitch;
  };
  // No butterfly came before the first: there is nothing to count.
  std::fill_n(work.offsets.data(), 32 * lanes, parameters.position.nothing * static_cast<std::int32_t>(counter_bytes));

  Smoother smoother(plane, begin, width, band.first_row * fast_stride, bottom, parameters, work);
  for (std::int64_t block_row = 0; block_row <= band.rows; ++block_row) {
    const std::size_t parity = static_cast<std::size_t>(block_row % 2);
    for (std::size_t row = 0; row < fast_stride; row += 2) {
      smoother.next_pair(first, second, (band.first_row + block_row) * fast_stride + static_cast<std::int64_t>(row));
      for (std::int64_t column = 0; column < band.columns; ++column) {
        transform_row_pair(pairs + static_cast<std::size_t>(column) * pair_pitch, first + column * fast_stride,
                           second + column * fast_stride, twiddles());
      }
      // Apart from the loop above: what was just stored is read backwards here, and has arrived by now.
      for (std::int64_t column = 0; column < band.columns; ++column) {
        separate_rows(window_spectra(column) + parity * block_pitch + row / 16 * sixteen_rows + row % 16 * row_pitch,
                      pairs + static_cast<std::size_t>(column) * pair_pitch);
      }
    }
    if (block_row == 0) continue;
    const std::int64_t wy = band.first_row + block_row - 1;
    for (std::int64_t column = 0; column < band.columns; ++column) {
      const PositionSums of_positions = parameters.position.any_range
                                            ? transform_window<true>(work, window_spectra(column), parity, parameters)
                                            : transform_window<false>(work, window_spectra(column), parity, parameters);
      add_window(sums, map.cell(band.first_column + column, wy), of_positions, parameters);
      if (++work.pending_windows + 1 >= windows_per_flush) flush_counters(sums, work, parameters.bins);
    }
  }
  for (std::size_t k = 0; k < 16; ++k) count(work.counters.data(), work.offsets.data() + 16 * lanes, k * lanes);
  flush_counters(sums, work, parameters.bins);
}

#endif

bool HasVectors() { return HWY_TARGET != HWY_SCALAR; }

const char* FastTargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(RunBand);
HWY_EXPORT(FastTargetName);
HWY_EXPORT(HasVectors);

namespace {

/// log2(x) - (x - 1) for 1 <= x < 2, coefficients of 1 to x^5: minimax, exact at both ends, off by at most 1.6e-5.
constexpr std::array<double, 6> log2_polynomial = {-1.8053443920525887, 4.106976495359516,   -3.568859776993264,
                                                   1.6413996568381872,  -0.4193210447162697, 0.04514906156441974};

/// Highest value of a window of 8-bit pixels, in dB: all white, 20 log10(1 + 255 x 256 x 256), and a little more.
constexpr double highest_value = 144.5;

/// Of a bin: values on a bin's lower edge (0 dB above all) belong to it, whatever the last bit of the arithmetic says.
constexpr double edge_allowance = 0x1p-13;

FastParameters make_parameters(const AnalysisConfig& config) {
  FastParameters parameters;
  const GaussianTaps taps = gaussian_taps(config.smoothing_radius, config.smoothing_sigma);
  for (std::size_t i = 0; i < parameters.taps.size(); ++i) parameters.taps[i] = static_cast<float>(taps[i]);

  const double low = config.range[0];
  const double high = config.range[1];
  const double bins_per_decibel = config.bins / (high - low);
  const double bins_per_octave = 20.0 * std::numbers::ln2 / std::numbers::ln10 * bins_per_decibel;
  parameters.bins = static_cast<std::size_t>(config.bins);
  parameters.half_bin = 0.5 - edge_allowance;
  parameters.value_per_position = 1.0 / bins_per_decibel;

  PositionConstants& position = parameters.position;
  position.per_bit = static_cast<float>(bins_per_octave * 0x1p-23);
  position.constant = static_cast<float>(bins_per_octave * log2_polynomial[0] - parameters.half_bin);
  for (std::size_t i = 0; i < position.polynomial.size(); ++i) {
    position.polynomial[i] = static_cast<float>(bins_per_octave * log2_polynomial[i + 1]);
  }
  position.any_range = low != 0.0 || high < highest_value;
  position.low = static_cast<float>(low * bins_per_decibel);
  position.end = static_cast<float>(config.bins);
  position.nothing = config.bins + 2;
  return parameters;
}

class HighwayEngine final : public SpectrumEngine {
 public:
  explicit HighwayEngine(const AnalysisConfig& config)
      : parameters_(make_parameters(config)),
        name_(std::string("highway-256 ") + HWY_DYNAMIC_DISPATCH(FastTargetName)()),
        run_band_(&HWY_DYNAMIC_DISPATCH(RunBand)) {}

  const char* name() const noexcept override { return name_.c_str(); }
  std::unique_ptr<Workspace> make_workspace() const override {
    return std::make_unique<FastWorkspace>(parameters_.bins);
  }
  std::int64_t columns_per_task() const noexcept override { return fast_columns; }

  void run(SpectrumSums& sums, const MapView& map, const LuminancePlane& plane, const WindowBlock& block,
           Workspace& workspace) const override {
    if (sums.histogram.size() != parameters_.bins) throw std::invalid_argument("the histogram has the wrong size");
    if (block.rows <= 0) return;
    for (std::int64_t done = 0; done < block.columns; done += fast_columns) {
      WindowBlock band = block;
      band.first_column += done;
      band.columns = std::min(fast_columns, block.columns - done);
      run_band_(sums, map, plane, band, static_cast<FastWorkspace&>(workspace), parameters_);
    }
  }

 private:
  FastParameters parameters_;
  std::string name_;
  decltype(&HWY_DYNAMIC_DISPATCH(RunBand)) run_band_;  ///< of the vector unit that `name_` says
};

}  // namespace

const Twiddles& twiddles() {
  static const Twiddles table = [] {
    Twiddles made;
    for (std::size_t a = 0; a < 16; ++a) {
      for (std::size_t b = 0; b < 16; ++b) {
        const double angle = -2.0 * std::numbers::pi * static_cast<double>(a * b) / 256.0;
        made.re[a][b] = static_cast<float>(std::cos(angle));
        made.im[a][b] = static_cast<float>(std::sin(angle));
      }
    }
    return made;
  }();
  return table;
}

FastWorkspace::FastWorkspace(std::size_t bins)
    : row_spectra(fast_columns * max_window_spectra),
      column_half(16 * 17 * 2 * max_lanes),
      row_pairs(fast_columns * pair_pitch),
      edge_columns(2 * pair_part),
      smoothed(2 * smoothed_pitch),
      ring(8 * ring_pitch),
      converted(ring_pitch),
      edge(ring_pitch),
      offsets(2 * 16 * max_lanes),
      counters(counter_copies * (bins + counters_beyond_bins)),
      edge_counters(bins + counters_beyond_bins) {}

bool highway_engine_takes(const AnalysisConfig& config) {
  const double bins_per_decibel = config.bins / (config.range[1] - config.range[0]);
  return HWY_DYNAMIC_DISPATCH(HasVectors)() && config.window == fast_window && config.stride == fast_stride &&
         config.smoothing_radius <= fast_radius && config.value == ValueKind::log1p_db &&
         config.bins <= max_fast_bins &&
         // Positions stay small enough for float32.
         bins_per_decibel <= 400.0 && std::abs(config.range[0]) <= 1000.0;
}

std::unique_ptr<SpectrumEngine> make_highway_engine(const AnalysisConfig& config) {
  return std::make_unique<HighwayEngine>(config);
}

}  // namespace slidestream
#endif
