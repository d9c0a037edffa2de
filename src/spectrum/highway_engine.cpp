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
std::size_t FastLanes() { return 1; }

#else

/// The first coefficients of a window's 16 last DFTs are 0 to 15.
constexpr std::array<std::uint16_t, 16> first_coefficients = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// One window from the row spectra of its two block rows. With `keep` collectors see its positions.
template <bool any_range, bool keep>
PositionSums transform_window(FastWorkspace& work, const float* spectra, std::size_t parity,
                              const FastParameters& parameters) {
  PositionSums sums;
  float* half = work.column_half.data();
  float* edge = work.edge_columns.data();
  std::int32_t* offsets = work.offsets.data();
  std::uint16_t* counters = work.counters.halved.data();
  float* kept = work.kept.data();
  constexpr std::size_t kept_of_group = fast_window * lanes;
  const PositionConstants& constants = parameters.positions.constants;
  const LastStep last{first_coefficients.data(), 16, pair_part, lanes, 0};
  for (std::size_t group = 0; group < groups; ++group) {
    const float* of_group = spectra + group * group_pitch;
    transform_columns_first(half, of_group + (1 - parity) * block_pitch, of_group + parity * block_pitch, twiddles());
    if (group == 0) {
      transform_and_count<true, any_range, false, keep>(sums, edge, offsets, counters, half, kept, constants, last);
    } else {
      transform_and_count<false, any_range, false, keep>(sums, edge, offsets, counters, half, kept, constants, last);
    }
    if constexpr (keep) work.collectors.add(kept, group * kept_of_group, kept_of_group);
  }
  sums.sum *= 2.0;
  sums.squares *= 2.0;
  finish_edge_columns<any_range, keep>(sums, work.counters.whole.data(), edge, kept, constants, fast_window, pair_part);
  if constexpr (keep) {
    work.collectors.add(kept, groups * kept_of_group, 2 * fast_window);
    work.collectors.end_window();
  }
  return sums;
}

void flush(SpectrumSums& sums, FastWorkspace& work, const FastParameters& parameters) {
  flush_counters(sums, work.counters, parameters.positions.bins);
  work.pending_windows = 0;
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
  std::fill_n(work.offsets.data(), 32 * lanes,
              parameters.positions.constants.nothing * static_cast<std::int32_t>(counter_bytes));

  // One build that keeps positions is enough, for any range.
  const auto transform = !work.collectors.empty()                   ? transform_window<true, true>
                         : parameters.positions.constants.any_range ? transform_window<true, false>
                                                                    : transform_window<false, false>;
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
      const PositionSums of_positions = transform(work, window_spectra(column), parity, parameters);
      add_window(sums, map.cell(band.first_column + column, wy), of_positions, fast_window * fast_window,
                 parameters.positions);
      if (++work.pending_windows + 1 >= windows_per_flush) flush(sums, work, parameters);
    }
  }
  for (std::size_t k = 0; k < 16; ++k) count(work.counters.halved.data(), work.offsets.data() + 16 * lanes, k * lanes);
  flush(sums, work, parameters);
}

std::size_t FastLanes() { return lanes; }

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
HWY_EXPORT(FastLanes);
HWY_EXPORT(HasVectors);

namespace {

FastParameters make_parameters(const AnalysisConfig& config) {
  FastParameters parameters{{}, Positions(config)};
  const GaussianTaps taps = gaussian_taps(config.smoothing_radius, config.smoothing_sigma);
  for (std::size_t i = 0; i < parameters.taps.size(); ++i) parameters.taps[i] = static_cast<float>(taps[i]);
  return parameters;
}

class HighwayEngine final : public SpectrumEngine {
 public:
  explicit HighwayEngine(const AnalysisConfig& config)
      : config_(config),
        parameters_(make_parameters(config)),
        layout_(kept_layout(fast_window, HWY_DYNAMIC_DISPATCH(FastLanes)(), parameters_.positions)),
        name_(std::string("highway-256 ") + HWY_DYNAMIC_DISPATCH(FastTargetName)()),
        run_band_(&HWY_DYNAMIC_DISPATCH(RunBand)) {}

  const char* name() const noexcept override { return name_.c_str(); }
  std::unique_ptr<Workspace> make_workspace() const override {
    return std::make_unique<FastWorkspace>(config_, layout_);
  }
  std::int64_t columns_per_task() const noexcept override { return fast_columns; }

  void run(SpectrumSums& sums, const MapView& map, const LuminancePlane& plane, const WindowBlock& block,
           Workspace& workspace) const override {
    if (sums.histogram.size() != parameters_.positions.bins)
      throw std::invalid_argument("the histogram has the wrong size");
    if (block.rows <= 0) return;
    for (std::int64_t done = 0; done < block.columns; done += fast_columns) {
      WindowBlock band = block;
      band.first_column += done;
      band.columns = std::min(fast_columns, block.columns - done);
      run_band_(sums, map, plane, band, static_cast<FastWorkspace&>(workspace), parameters_);
    }
    static_cast<FastWorkspace&>(workspace).collectors.flush(sums);
  }

 private:
  AnalysisConfig config_;
  FastParameters parameters_;
  ValueLayout layout_;
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

FastWorkspace::FastWorkspace(const AnalysisConfig& config, const ValueLayout& layout)
    : row_spectra(fast_columns * max_window_spectra),
      column_half(16 * 17 * 2 * max_lanes),
      row_pairs(fast_columns * pair_pitch),
      edge_columns(2 * pair_part),
      smoothed(2 * smoothed_pitch),
      ring(8 * ring_pitch),
      converted(ring_pitch),
      edge(ring_pitch),
      offsets(2 * 16 * max_lanes),
      counters(static_cast<std::size_t>(config.bins)),
      collectors(config, layout),
      kept(collectors.empty() ? 0 : kept_floats(fast_window)) {}

bool highway_engine_takes(const AnalysisConfig& config) {
  return HWY_DYNAMIC_DISPATCH(HasVectors)() && config.window == fast_window && config.stride == fast_stride &&
         config.smoothing_radius <= fast_radius && positions_take(config);
}

std::unique_ptr<SpectrumEngine> make_highway_engine(const AnalysisConfig& config) {
  return std::make_unique<HighwayEngine>(config);
}

}  // namespace slidestream
#endif
