#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "spectrum/aligned_buffer.hpp"
#include "spectrum/engines.hpp"
#include "spectrum/plain_kernels.hpp"
#include "spectrum/real_dft_2d.hpp"
#include "spectrum/smoothing.hpp"

namespace slidestream {

namespace {

/// Bins and windows are counted in 32 bits here, and added to the 64-bit histogram before they could overflow.
constexpr std::uint64_t max_pending_values = std::uint64_t{1} << 31;

/// How one engine cuts its work; the same for all workspaces.
struct Shape {
  std::int64_t window = 0;
  std::int64_t stride = 0;
  std::int64_t radius = 0;
  std::int64_t columns = 0;      ///< window columns side by side that share smoothed rows
  std::size_t band_pitch = 0;    ///< floats from a smoothed row to the next
  std::size_t padded_width = 0;  ///< floats of a row before it is smoothed horizontally, with `radius` on both sides
  std::size_t bins = 0;
  std::size_t histogram_copies = 0;  ///< neighbours often fall into one bin: copies keep them from waiting for it
};

Shape make_shape(const AnalysisConfig& config) {
  Shape shape;
  shape.window = config.window;
  shape.stride = config.stride;
  shape.radius = config.smoothing_radius;
  // A band of a few windows' width smooths shared pixels once and stays within the cache; huge windows go one by one.
  const std::int64_t widest = std::min(4 * shape.window, std::max<std::int64_t>(shape.window, 2048));
  const std::int64_t columns = shape.stride >= shape.window ? 1 : 1 + (widest - shape.window) / shape.stride;
  shape.columns = std::clamp<std::int64_t>(columns, 1, 64);
  const std::size_t width = static_cast<std::size_t>((shape.columns - 1) * shape.stride + shape.window);
  shape.band_pitch = width + row_slack + 16;  // off the powers of two, where rows would share cache sets
  shape.padded_width = width + 2 * static_cast<std::size_t>(shape.radius) + 2 * row_slack;
  shape.bins = static_cast<std::size_t>(config.bins);
  shape.histogram_copies = config.bins <= 4096 ? 4 : 1;
  return shape;
}

class FftwWorkspace final : public SpectrumEngine::Workspace {
 public:
  explicit FftwWorkspace(const Shape& shape)
      : band(static_cast<std::size_t>(shape.window) * shape.band_pitch),
        row(shape.padded_width),
        pixels(static_cast<std::size_t>(shape.window * shape.window)),
        spectrum(static_cast<std::size_t>(shape.window * (shape.window / 2 + 1)) + row_slack),
        values(static_cast<std::size_t>(shape.window / 2 + 1) + row_slack),
        bins(static_cast<std::size_t>(shape.window / 2 + 1) + row_slack),
        counts(shape.histogram_copies * shape.bins) {}

  AlignedBuffer<float> band;    ///< the newest `window` smoothed rows; row y stands at y % window
  AlignedBuffer<float> row;     ///< one row smoothed vertically, with mirrored ends
  AlignedBuffer<float> pixels;  ///< one window
  AlignedBuffer<std::complex<float>> spectrum;
  AlignedBuffer<float> values;  ///< of one row of the spectrum
  AlignedBuffer<std::int32_t> bins;
  AlignedBuffer<std::uint32_t> counts;
  std::uint64_t pending_values = 0;  ///< in `counts`
};

class FftwEngine final : public SpectrumEngine {
 public:
  explicit FftwEngine(const AnalysisConfig& config)
      : shape_(make_shape(config)),
        dft_(make_fftw_dft_2d(config.window, config.fftw_wisdom)),
        name_(std::string("fftw-") + std::to_string(config.window) + " " + plain_kernels_target()) {
    const GaussianTaps taps = gaussian_taps(config.smoothing_radius, config.smoothing_sigma);
    std::transform(taps.begin(), taps.end(), taps_.begin(), [](double tap) { return static_cast<float>(tap); });
    binning_.value = config.value;
    binning_.low = static_cast<float>(config.range[0]);
    binning_.scale = static_cast<float>(config.bins / (config.range[1] - config.range[0]));
    binning_.bins = config.bins;
  }

  const char* name() const noexcept override { return name_.c_str(); }
  std::unique_ptr<Workspace> make_workspace() const override { return std::make_unique<FftwWorkspace>(shape_); }
  std::int64_t columns_per_task() const noexcept override { return shape_.columns; }

  void run(SpectrumSums& sums, const MapView& map, const LuminancePlane& plane, const WindowBlock& block,
           Workspace& workspace) const override {
    if (sums.histogram.size() != shape_.bins) throw std::invalid_argument("the histogram has the wrong size");
    auto& work = static_cast<FftwWorkspace&>(workspace);
    for (std::int64_t done = 0; done < block.columns; done += shape_.columns) {
      WindowBlock band = block;
      band.first_column += done;
      band.columns = std::min(shape_.columns, block.columns - done);
      run_band(sums, map, plane, band, work);
    }
    flush(sums, work);
  }

 private:
  /// Walks down the windows of a band, smoothing each row once.
  void run_band(SpectrumSums& sums, const MapView& map, const LuminancePlane& plane, const WindowBlock& band,
                FftwWorkspace& work) const {
    const std::int64_t window = shape_.window;
    std::int64_t next_row = 0;
    for (std::int64_t wy = band.first_row; wy < band.first_row + band.rows; ++wy) {
      const std::int64_t top = wy * shape_.stride;
      for (next_row = std::max(next_row, top); next_row < top + window; ++next_row) {
        smooth_row(work.band.data() + static_cast<std::size_t>(next_row % window) * shape_.band_pitch, plane, band,
                   next_row, work);
      }
      for (std::int64_t column = 0; column < band.columns; ++column) {
        const float* from = work.band.data() + column * shape_.stride;
        for (std::int64_t y = 0; y < window; ++y) {
          std::memcpy(work.pixels.data() + y * window,
                      from + static_cast<std::size_t>((top + y) % window) * shape_.band_pitch,
                      static_cast<std::size_t>(window) * sizeof(float));
        }
        float* cell =
            map.values == nullptr ? nullptr : map.values + (wy * map.columns + band.first_column + column) * 2;
        add_window(sums, cell, work);
      }
    }
  }

  void smooth_row(float* out, const LuminancePlane& plane, const WindowBlock& band, std::int64_t y,
                  FftwWorkspace& work) const {
    const std::int64_t radius = shape_.radius;
    const std::int64_t begin = band.first_column * shape_.stride;
    const std::int64_t end = begin + (band.columns - 1) * shape_.stride + shape_.window;
    const std::int64_t from = std::max<std::int64_t>(begin - radius, 0);
    const std::int64_t to = std::min(end + radius, plane.image_width);
    std::array<const std::uint8_t*, 2 * max_smoothing_radius + 1> rows{};
    for (std::int64_t i = -radius; i <= radius; ++i) {
      const std::int64_t row = mirrored(y + i, plane.image_height) - plane.y0;
      rows[static_cast<std::size_t>(i + radius)] = plane.data + row * plane.pitch + (from - plane.x0);
    }

    float* line = work.row.data() + radius - begin;  // line[x] is column x of the image
    smooth_vertically(line + from, rows.data(), taps_.data(), static_cast<int>(radius),
                      static_cast<std::size_t>(to - from));
    // Columns smooth alike wherever they stand: what lies beyond the image is a copy of its mirror image.
    for (std::int64_t x = begin - radius; x < from; ++x) line[x] = line[mirrored(x, plane.image_width)];
    for (std::int64_t x = to; x < end + radius; ++x) line[x] = line[mirrored(x, plane.image_width)];
    smooth_horizontally(out, line + begin, taps_.data(), static_cast<int>(radius),
                        static_cast<std::size_t>(end - begin));
  }

  /// Transforms `work.pixels` and adds what it gives.
  void add_window(SpectrumSums& sums, float* cell, FftwWorkspace& work) const {
    const std::size_t side = static_cast<std::size_t>(shape_.window);
    const std::size_t half = side / 2;
    const std::uint64_t value_count = side * side;
    if (work.pending_values + value_count > max_pending_values) flush(sums, work);
    dft_->forward(work.spectrum.data(), work.pixels.data());
    work.spectrum.data()[0] += static_cast<float>(luminance_offset) * static_cast<float>(value_count);

    double value_sum = 0.0;
    double square_sum = 0.0;
    const float* values = work.values.data();
    const std::int32_t* bins = work.bins.data();
    std::array<std::uint32_t*, 4> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) {
      counts[i] = work.counts.data() + i % shape_.histogram_copies * shape_.bins;
    }
    for (std::size_t y = 0; y < side; ++y) {
      const RowSums row =
          bin_row(work.values.data(), work.bins.data(), work.spectrum.data() + y * (half + 1), half + 1, binning_);
      // Columns 0 and N/2 have no mirror image on the other side: they count once, all others twice.
      const double first = values[0];
      const double last = values[half];
      value_sum += 2.0 * row.values - first - last;
      square_sum += 2.0 * row.squares - first * first - last * last;
      sums.clipped += 2 * std::uint64_t{row.clipped} - (outside(values[0]) ? 1 : 0) - (outside(values[half]) ? 1 : 0);
      ++counts[0][bins[0]];
      ++counts[1][bins[half]];
      for (std::size_t x = 1; x < half; ++x) counts[x % 4][bins[x]] += 2;
    }
    work.pending_values += value_count;
    sums.add_window(value_sum, square_sum, value_count);
    if (cell != nullptr) {
      const double mean = value_sum / static_cast<double>(value_count);
      const double variance = square_sum / static_cast<double>(value_count) - mean * mean;
      cell[0] = static_cast<float>(mean);
      cell[1] = static_cast<float>(std::sqrt(std::max(variance, 0.0)));
    }
  }

  /// As bin_row sees it.
  bool outside(float value) const noexcept {
    const float position = (value - binning_.low) * binning_.scale;
    return position < 0.0F || position >= static_cast<float>(binning_.bins);
  }

  void flush(SpectrumSums& sums, FftwWorkspace& work) const noexcept {
    for (std::size_t copy = 0; copy < shape_.histogram_copies; ++copy) {
      std::uint32_t* counts = work.counts.data() + copy * shape_.bins;
      for (std::size_t bin = 0; bin < shape_.bins; ++bin) sums.histogram[bin] += counts[bin];
      std::fill_n(counts, shape_.bins, 0U);
    }
    work.pending_values = 0;
  }

  Shape shape_;
  std::unique_ptr<RealDft2d> dft_;
  std::string name_;
  std::array<float, max_smoothing_radius + 1> taps_{};
  Binning binning_;
};

}  // namespace

std::unique_ptr<SpectrumEngine> make_fftw_engine(const AnalysisConfig& config) {
  return std::make_unique<FftwEngine>(config);
}

}  // namespace slidestream
