#include <algorithm>
#include <stdexcept>
#include <string>

#include "cuda/spectrum/cufft_layout.hpp"
#include "cuda/spectrum/cufft_library.hpp"
#include "cuda/spectrum/device_statistics.hpp"
#include "cuda/spectrum/engines.hpp"
#include "cuda/spectrum/ring_sums.hpp"
#include "cuda/spectrum/smoothing.hpp"
#include "cuda/spectrum/window_batch.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

class CufftWindowEngine final : public WindowEngine {
 public:
  explicit CufftWindowEngine(const AnalysisConfig& config)
      : config_(config),
        statistics_(config),
        window_(config.window),
        stride_(config.stride),
        bins_(static_cast<std::size_t>(config.bins)),
        batch_(cufft_batch(config.window)),
        taps_(smoothing_taps(config, 1.0F)),
        plan_(window_, batch_),
        binning_(config),
        name_("cufft-" + std::to_string(window_)) {}

  const char* name() const noexcept override { return name_.c_str(); }

  std::size_t scratch_bytes(std::int64_t, std::int64_t, const WindowBlock& block) const override {
    return CufftScratch(block, window_, stride_, needs()).bytes;
  }

  void enqueue(const DeviceSums& sums, const DevicePlane& plane, const WindowBlock& block, std::span<std::byte> scratch,
               cudaStream_t stream) override {
    SLIDESTREAM_CUDA(cudaMemsetAsync(sums.histogram, 0, bins_ * sizeof(std::uint64_t), stream));
    SLIDESTREAM_CUDA(cudaMemsetAsync(sums.clipped, 0, sizeof(std::uint64_t), stream));
    if (sums.counters != nullptr) {
      SLIDESTREAM_CUDA(cudaMemsetAsync(sums.counters, 0, statistics_.counters * sizeof(std::int64_t), stream));
    }
    if (block.columns <= 0 || block.rows <= 0) return;
    const CufftScratch buffers(block, window_, stride_, needs(), scratch.data());
    if (buffers.bytes > scratch.size()) throw std::invalid_argument("the window engine's scratch is too small");

    auto* spectra = reinterpret_cast<cufftComplex*>(buffers.spectra);
    smooth(buffers.smoothed, plane, taps_, stream);
    const std::int64_t windows = block.columns * block.rows;
    for (std::int64_t first = 0; first < windows; first += batch_) {
      const WindowRange range = {block, first, static_cast<int>(std::min<std::int64_t>(batch_, windows - first))};
      gather_windows(buffers.samples, batch_, buffers.smoothed, range, window_, stride_, stream);
      plan_.execute(spectra, buffers.samples, buffers.work, stream);
      binning_.add(sums.histogram, sums.clipped, sums.moments + 2 * first, spectra, range.count, buffers.partials,
                   stream);
      if (statistics_.rings > 0) {
        add_rings(sums.counters + statistics_.first_ring, spectra, range.count, config_, statistics_.radial_bits,
                  stream);
      }
      if (statistics_.split) {
        auto* const counters = reinterpret_cast<std::uint64_t*>(sums.counters);
        binning_.count(counters + statistics_.tissue_histogram, counters + statistics_.tissue_clipped, spectra,
                       range.count, buffers.partials, sums.tissue + first, stream);
      }
    }
  }

 private:
  CufftNeeds needs() const { return {binning_.partial_doubles(static_cast<std::size_t>(batch_)), plan_.work_bytes()}; }

  AnalysisConfig config_;
  DeviceStatistics statistics_;
  int window_;
  int stride_;
  std::size_t bins_;
  int batch_;
  SmoothingTaps taps_;
  CufftPlan plan_;
  SpectrumBinning binning_;
  std::string name_;
};

}  // namespace

std::unique_ptr<WindowEngine> make_cufft_window_engine(const AnalysisConfig& config) {
  return std::make_unique<CufftWindowEngine>(config);
}

}  // namespace slidestream::cuda
