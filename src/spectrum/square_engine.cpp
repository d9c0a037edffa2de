#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "spectrum/engines.hpp"
#include "spectrum/square_layout.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "spectrum/square_engine.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first
#include <hwy/highway.h>

#if HWY_TARGET != HWY_SCALAR
#include "spectrum/column_transform-inl.hpp"
#include "spectrum/square_transform-inl.hpp"
#endif

HWY_BEFORE_NAMESPACE();
namespace slidestream::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

// Without vectors KISS FFT does: square_transforms_take says no, and these are never called.
void RunWindows(SpectrumSums& /*sums*/, const MapView& /*map*/, const WindowBlock& /*windows*/,
                const float* const* /*rows*/, SquareWorkspace& /*work*/, const SquareParameters& /*parameters*/) {}
void TransformSquare(std::complex<float>* /*spectrum*/, const float* /*pixels*/, float* /*scratch*/,
                     const SquarePlan& /*plan*/) {}
std::size_t SquareLanes() { return 1; }

#else

/// One window, the first of whose columns is x, from the column spectra. With `keep` collectors see
/// its positions.
template <bool any_range, bool keep>
PositionSums transform_window(SpectrumSums& sums, SquareWorkspace& work, std::size_t pitch, std::size_t x,
                              std::size_t& turn, const SquareParameters& parameters) {
  const SquarePlan& plan = parameters.plan;
  const PositionConstants& constants = parameters.positions.constants;
  const std::size_t half = plan.side / 2;
  float* line = work.line.data();
  float* edge = work.edge_columns.data();
  std::int32_t* offsets = work.offsets.data();
  std::uint16_t* counters = work.counters.halved.data();
  float* kept = work.kept.data();
  const std::size_t kept_of_group = plan.side * lanes;
  LastStep last{plan.along.first.data(), plan.along.first.size(), parameters.edge_part, HWY_MIN(lanes, half), turn};
  // A group of ky adds so much to a counter's copy at most, all its values being equal.
  const std::uint64_t of_group = plan.side * HWY_MAX(lanes, counter_copies) / counter_copies;
  PositionSums found;
  for (std::size_t group = 0; group * lanes < half; ++group) {
    if (work.pending + of_group > 65535) {
      flush_counters(sums, work.counters, parameters.positions.bins);
      work.pending = 0;
    }
    work.pending += of_group;
    begin_rows(line, plan.along, work.spectra.data() + group * pitch, x);
    if (group == 0) {
      transform_and_count<true, any_range, true, keep>(found, edge, offsets, counters, line, kept, constants, last);
    } else {
      transform_and_count<false, any_range, true, keep>(found, edge, offsets, counters, line, kept, constants, last);
    }
    if constexpr (keep) work.collectors.add(kept, group * kept_of_group, kept_of_group);
    last.turn += last.blocks;
  }
  turn = last.turn % 2;
  found.sum *= 2.0;
  found.squares *= 2.0;
  finish_edge_columns<any_range, keep>(found, work.counters.whole.data(), edge, kept, constants, plan.side,
                                       parameters.edge_part);
  if constexpr (keep) {
    work.collectors.add(kept, (half + lanes - 1) / lanes * kept_of_group, 2 * plan.side);
    work.collectors.end_window();
  }
  return found;
}

/// A row of windows side by side, of which `rows` holds the smoothed pixels, halved.
void RunWindows(SpectrumSums& sums, const MapView& map, const WindowBlock& windows, const float* const* rows,
                SquareWorkspace& work, const SquareParameters& parameters) {
  const std::size_t side = parameters.plan.side;
  const std::size_t stride = static_cast<std::size_t>(parameters.stride);
  const std::size_t width = static_cast<std::size_t>(windows.columns - 1) * stride + side;
  const Positions& positions = parameters.positions;
  transform_columns(work.spectra.data(), work.natural.data(), work.line.data(), parameters.plan, rows, width);

  // No butterfly came before the first: there is nothing to count.
  std::fill_n(work.offsets.data(), 32 * lanes, positions.constants.nothing * static_cast<std::int32_t>(counter_bytes));
  std::size_t turn = 0;
  // One build that keeps positions is enough, for any range.
  const auto transform = !work.collectors.empty()        ? transform_window<true, true>
                         : positions.constants.any_range ? transform_window<true, false>
                                                         : transform_window<false, false>;
  for (std::int64_t column = 0; column < windows.columns; ++column) {
    const PositionSums found =
        transform(sums, work, spectra_pitch(width), static_cast<std::size_t>(column) * stride, turn, parameters);
    add_window(sums, map.cell(windows.first_column + column, windows.first_row), found, side * side, positions);
  }
  const std::int32_t* newest = work.offsets.data() + (turn + 1) % 2 * 16 * lanes;
  for (std::size_t k = 0; k < 16; ++k) count(work.counters.halved.data(), newest, k * lanes);
}

/// The last DFTs of a group of rows, into columns `ky` on of a half spectrum, from twice to once its size.
HWY_NOINLINE void store_rows(std::complex<float>* HWY_RESTRICT spectrum, const float* HWY_RESTRICT line,
                             const SquarePlan& plan, std::size_t ky) {
  const std::size_t half = plan.side / 2;
  const Floats one_half = all(0.5F);
  for (std::size_t block = 0; block < plan.along.first.size(); ++block) {
    const float* from = line + padded(16 * block);
    dft16(
        [&](int n) SLIDESTREAM_INLINE_LAMBDA {
          return Complex{load(from + n * row_pitch), load(from + n * row_pitch + lanes)};
        },
        [&](int k, Complex f) SLIDESTREAM_INLINE_LAMBDA {
          const std::size_t kx = plan.along.first[block] + static_cast<std::size_t>(k) * plan.along.first.size();
          alignas(64) std::complex<float> row[lanes];
          hn::StoreInterleaved2(hn::Mul(one_half, f.re), hn::Mul(one_half, f.im), float_tag,
                                reinterpret_cast<float*>(row));
          std::copy_n(row, HWY_MIN(lanes, half - ky), spectrum + kx * (half + 1) + ky);
        });
  }
}

void TransformSquare(std::complex<float>* spectrum, const float* pixels, float* scratch, const SquarePlan& plan) {
  const SquareScratch parts(plan.side, plan.side);
  float* line = scratch + parts.spectra;
  const float* rows[max_square_side];
  for (std::size_t y = 0; y < plan.side; ++y) rows[y] = pixels + y * plan.side;
  transform_columns(scratch, line + parts.line, line, plan, rows, plan.side);
  const std::size_t half = plan.side / 2;
  for (std::size_t ky = 0; ky < half; ky += lanes) {
    begin_rows(line, plan.along, scratch + ky / lanes * spectra_pitch(plan.side), 0);
    store_rows(spectrum, line, plan, ky);
  }
  // ky 0 and N / 2 came as one: F0(k) = (Z(k) + conj Z(-k)) / 2, FN/2(k) = (Z(k) - conj Z(-k)) / 2i.
  for (std::size_t k = 0; k <= half; ++k) {
    std::complex<float>* row = spectrum + k * (half + 1);
    std::complex<float>* back = spectrum + (plan.side - k) % plan.side * (half + 1);
    const std::complex<float> z = row[0];
    const std::complex<float> mirrored = back[0];
    row[0] = {0.5F * (z.real() + mirrored.real()), 0.5F * (z.imag() - mirrored.imag())};
    row[half] = {0.5F * (z.imag() + mirrored.imag()), 0.5F * (mirrored.real() - z.real())};
    back[0] = std::conj(row[0]);
    back[half] = std::conj(row[half]);
  }
}

std::size_t SquareLanes() { return lanes; }

#endif

bool HasSquareTransforms() { return HWY_TARGET != HWY_SCALAR; }

const char* SquareTargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
}  // namespace slidestream::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slidestream {

HWY_EXPORT(RunWindows);
HWY_EXPORT(TransformSquare);
HWY_EXPORT(SquareLanes);
HWY_EXPORT(HasSquareTransforms);
HWY_EXPORT(SquareTargetName);

namespace {

std::string square_name(int side) { return "highway-" + std::to_string(side); }

class SquareEngine final : public SpectrumEngine {
 public:
  explicit SquareEngine(const AnalysisConfig& config)
      // Halved, as separate_columns doubles.
      : config_(config),
        band_(config, widest_square_band, 0.5F),
        parameters_{SquarePlan(static_cast<std::size_t>(config.window)), Positions(config), config.stride,
                    static_cast<std::size_t>(config.window) + 16},
        layout_(kept_layout(parameters_.plan.side, HWY_DYNAMIC_DISPATCH(SquareLanes)(), parameters_.positions)),
        name_(square_name(config.window) + " " + HWY_DYNAMIC_DISPATCH(SquareTargetName)()),
        run_windows_(&HWY_DYNAMIC_DISPATCH(RunWindows)) {}

  const char* name() const noexcept override { return name_.c_str(); }
  std::unique_ptr<Workspace> make_workspace() const override {
    const SquareScratch scratch(parameters_.plan.side, static_cast<std::size_t>(band_.width()));
    return std::make_unique<SquareWorkspace>(band_, scratch, parameters_.edge_part, config_, layout_);
  }
  std::int64_t columns_per_task() const noexcept override { return band_.columns(); }

  void run(SpectrumSums& sums, const MapView& map, const LuminancePlane& plane, const WindowBlock& block,
           Workspace& workspace) const override {
    const std::size_t bins = parameters_.positions.bins;
    if (sums.histogram.size() != bins) throw std::invalid_argument("the histogram has the wrong size");
    auto& work = static_cast<SquareWorkspace&>(workspace);
    band_.walk(plane, block, work.band, [&](const WindowBlock& windows, const float* const* rows) {
      run_windows_(sums, map, windows, rows, work, parameters_);
    });
    flush_counters(sums, work.counters, bins);
    work.pending = 0;
    work.collectors.flush(sums);
  }

 private:
  AnalysisConfig config_;
  WindowBand band_;
  SquareParameters parameters_;
  ValueLayout layout_;
  std::string name_;
  decltype(&HWY_DYNAMIC_DISPATCH(RunWindows)) run_windows_;  ///< of the vector unit that `name_` says
};

class SquareDft2d final : public RealDft2d {
 public:
  explicit SquareDft2d(int n)
      : plan_(static_cast<std::size_t>(n)), name_(square_name(n)), transform_(&HWY_DYNAMIC_DISPATCH(TransformSquare)) {}

  const char* name() const noexcept override { return name_.c_str(); }
  std::size_t scratch_floats() const noexcept override {
    const SquareScratch parts(plan_.side, plan_.side);
    return parts.spectra + parts.line + parts.natural;
  }
  bool halves_ky() const noexcept override { return true; }
  void forward(std::complex<float>* spectrum, const float* pixels, float* scratch) const override {
    transform_(spectrum, pixels, scratch, plan_);
  }

 private:
  SquarePlan plan_;
  std::string name_;
  decltype(&HWY_DYNAMIC_DISPATCH(TransformSquare)) transform_;
};

}  // namespace

bool square_transforms_take(int n) { return is_square_side(n) && HWY_DYNAMIC_DISPATCH(HasSquareTransforms)(); }

std::unique_ptr<SpectrumEngine> make_square_engine(const AnalysisConfig& config) {
  return std::make_unique<SquareEngine>(config);
}

std::unique_ptr<RealDft2d> make_square_dft_2d(int n) { return std::make_unique<SquareDft2d>(n); }

}  // namespace slidestream
#endif
