#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "spectrum/aligned_buffer.hpp"
#include "spectrum/band.hpp"
#include "spectrum/engines.hpp"
#include "spectrum/plain_kernels.hpp"
#include "spectrum/smoothing.hpp"
#include "statistics/collector.hpp"

namespace slidestream {

namespace {

/// Values are counted by bin in 32 bits here, and added to the 64-bit histogram before a bin could overflow.
constexpr std::uint64_t max_pending_values = std::uint64_t{1} << 31;

/// A band of a few windows' width smooths shared pixels once and stays within the cache.
constexpr std::int64_t widest_band = 1024;

struct PlainWorkspace final : SpectrumEngine::Workspace {
  PlainWorkspace(const WindowBand& shape, const RealDft2d& dft, std::size_t side, std::size_t counters,
                 const AnalysisConfig& config, const ValueLayout& layout)
      : band(shape.make_buffers()),
        pixels(side * side),
        spectrum(side * (side / 2 + 1) + row_slack),
        scratch(dft.scratch_floats()),
        values(side / 2 + 1 + row_slack),
        bins(side / 2 + 1 + row_slack),
        counts(counters),
        collectors(config, layout) {}

  BandBuffers band;
  AlignedBuffer<float> pixels;  ///< one window
  AlignedBuffer<std::complex<float>> spectrum;
  AlignedBuffer<float> scratch;
  AlignedBuffer<float> values;  ///< of one row of the spectrum
  AlignedBuffer<std::int32_t> bins;
  AlignedBuffer<std::uint32_t> counts;
  Collectors collectors;
  std::uint64_t pending_values = 0;  ///< in `counts`
};

class PlainEngine final : public SpectrumEngine {
 public:
  PlainEngine(const AnalysisConfig& config, std::unique_ptr<RealDft2d> dft)
      : config_(config),
        band_(config, widest_band, 1.0F),
        stride_(config.stride),
        side_(static_cast<std::size_t>(config.window)),
        histogram_copies_(config.bins <= 4096 ? 4 : 1),
        dft_(std::move(dft)),
        name_(std::string(dft_->name()) + " " + kernels_.unit) {
    binning_.value = config.value;
    binning_.low = static_cast<float>(config.range[0]);
    binning_.scale = static_cast<float>(config.bins / (config.range[1] - config.range[0]));
    binning_.bins = config.bins;
    layout_ = make_layout();
  }

  const char* name() const noexcept override { return name_.c_str(); }
  std::unique_ptr<Workspace> make_workspace() const override {
    return std::make_unique<PlainWorkspace>(band_, *dft_, side_, histogram_copies_ * bins(), config_, layout_);
  }
  std::int64_t columns_per_task() const noexcept override { return band_.columns(); }

  void run(SpectrumSums& sums, const MapView& map, const LuminancePlane& plane, const WindowBlock& block,
           Workspace& workspace) const override {
    if (sums.histogram.size() != bins()) throw std::invalid_argument("the histogram has the wrong size");
    auto& work = static_cast<PlainWorkspace&>(workspace);
    band_.walk(plane, block, work.band, [&](const WindowBlock& windows, const float* const* rows) {
      for (std::int64_t column = 0; column < windows.columns; ++column) {
        for (std::size_t y = 0; y < side_; ++y) {
          std::memcpy(work.pixels.data() + y * side_, rows[y] + column * stride_, side_ * sizeof(float));
        }
        add_window(sums, map.cell(windows.first_column + column, windows.first_row), work);
      }
    });
    flush(sums, work);
    work.collectors.flush(sums);
  }

 private:
  /// Row by row of the half spectrum; of some transforms it is the half of ky.
  ValueLayout make_layout() const {
    const std::size_t columns = side_ / 2 + 1;
    ValueLayout layout;
    layout.places = side_ * columns;
    layout.place = [side = side_, columns, turned = dft_->halves_ky()](std::size_t i) {
      const int halved = static_cast<int>(i % columns);
      const int whole = signed_frequency(i / columns, side);
      const int weight = halved == 0 || i % columns == side / 2 ? 1 : 2;
      return turned ? ValuePlace{whole, halved, weight} : ValuePlace{halved, whole, weight};
    };
    return layout;
  }

  std::size_t bins() const noexcept { return static_cast<std::size_t>(binning_.bins); }

  /// Transforms `work.pixels` and adds what it gives.
  void add_window(SpectrumSums& sums, float* cell, PlainWorkspace& work) const {
    const std::size_t half = side_ / 2;
    const std::uint64_t value_count = side_ * side_;
    if (work.pending_values + value_count > max_pending_values) flush(sums, work);
    dft_->forward(work.spectrum.data(), work.pixels.data(), work.scratch.data());
    work.spectrum.data()[0] += static_cast<float>(luminance_offset) * static_cast<float>(value_count);

    double value_sum = 0.0;
    double square_sum = 0.0;
    const float* values = work.values.data();
    const std::int32_t* bins_of_row = work.bins.data();
    std::array<std::uint32_t*, 4> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = work.counts.data() + i % histogram_copies_ * bins();
    }
    for (std::size_t y = 0; y < side_; ++y) {
      const RowSums row = kernels_.bin_row(work.values.data(), work.bins.data(), work.spectrum.data() + y * (half + 1),
                                           half + 1, binning_);
      // Columns 0 and N/2 have no mirror image on the other side: they count once, all others twice.
      const double first = values[0];
      const double last = values[half];
      value_sum += 2.0 * row.values - first - last;
      square_sum += 2.0 * row.squares - first * first - last * last;
      sums.clipped += 2 * std::uint64_t{row.clipped} - (outside(values[0]) ? 1 : 0) - (outside(values[half]) ? 1 : 0);
      work.collectors.add(values, y * (half + 1), half + 1);
      ++counts[0][bins_of_row[0]];
      ++counts[1][bins_of_row[half]];
      for (std::size_t x = 1; x < half; ++x) counts[x % 4][bins_of_row[x]] += 2;
    }
    work.collectors.end_window();
    work.pending_values += value_count;
    sums.add_window(value_sum, square_sum, value_count);
    store_moments(cell, value_sum, square_sum, static_cast<double>(value_count));
  }

  /// As bin_row sees it.
  bool outside(float value) const noexcept {
    const float position = (value - binning_.low) * binning_.scale;
    return position < 0.0F || position >= static_cast<float>(binning_.bins);
  }

  void flush(SpectrumSums& sums, PlainWorkspace& work) const noexcept {
    for (std::size_t copy = 0; copy < histogram_copies_; ++copy) {
      std::uint32_t* counts = work.counts.data() + copy * bins();
      for (std::size_t bin = 0; bin < bins(); ++bin) sums.histogram[bin] += counts[bin];
      std::fill_n(counts, bins(), 0U);
    }
    work.pending_values = 0;
  }

  AnalysisConfig config_;
  ValueLayout layout_;
  WindowBand band_;
  std::int64_t stride_;
  std::size_t side_;
  std::size_t histogram_copies_;  ///< neighbours often fall into one bin: copies keep them from waiting for it
  PlainKernels kernels_ = plain_kernels();
  std::unique_ptr<RealDft2d> dft_;
  std::string name_;
  Binning binning_;
};

}  // namespace

std::unique_ptr<SpectrumEngine> make_plain_engine(const AnalysisConfig& config, std::unique_ptr<RealDft2d> dft) {
  return std::make_unique<PlainEngine>(config, std::move(dft));
}

}  // namespace slidestream
