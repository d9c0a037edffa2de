#include <algorithm>
#include <stdexcept>
#include <string>

#include "cuda/spectrum/cufft_library.hpp"
#include "cuda/spectrum/engines.hpp"
#include "cuda/spectrum/scratch_layout.hpp"
#include "cuda/spectrum/smoothing.hpp"
#include "cuda/spectrum/window_batch.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

/// Samples transformed at a time: enough to fill a GPU, and little enough to stay partly in its cache. How many windows
/// that is depends on their size alone, so that all windows of all blocks go through the same plan.
constexpr std::int64_t batch_samples = std::int64_t{1} << 26;
constexpr std::int64_t most_windows = 1 << 16;

int batch_for(int window) {
  return static_cast<int>(std::clamp<std::int64_t>(batch_samples / (std::int64_t{window} * window), 1, most_windows));
}

class CufftWindowEngine final : public WindowEngine {
 public:
  explicit CufftWindowEngine(const AnalysisConfig& config)
      : window_(config.window),
        stride_(config.stride),
        bins_(static_cast<std::size_t>(config.bins)),
        batch_(batch_for(config.window)),
        taps_(smoothing_taps(config, 1.0F)),
        plan_(window_, batch_),
        binning_(config),
        name_("cufft-" + std::to_string(window_)) {}

  const char* name() const noexcept override { return name_.c_str(); }

  std::size_t scratch_bytes(std::int64_t, std::int64_t, const WindowBlock& block) const override {
    ScratchLayout layout;
    static_cast<void>(lay_out(layout, block));
    return layout.bytes();
  }

  void enqueue(const DeviceSums& sums, const DevicePlane& plane, const WindowBlock& block, std::span<std::byte> scratch,
               cudaStream_t stream) override {
    SLIDESTREAM_CUDA(cudaMemsetAsync(sums.histogram, 0, bins_ * sizeof(std::uint64_t), stream));
    SLIDESTREAM_CUDA(cudaMemsetAsync(sums.clipped, 0, sizeof(std::uint64_t), stream));
    if (block.columns <= 0 || block.rows <= 0) return;
    ScratchLayout layout(scratch.data());
    const Buffers buffers = lay_out(layout, block);
    if (layout.bytes() > scratch.size()) throw std::invalid_argument("the window engine's scratch is too small");

    smooth(buffers.smoothed, plane, taps_, stream);
    const std::int64_t windows = block.columns * block.rows;
    for (std::int64_t first = 0; first < windows; first += batch_) {
      const WindowRange range = {block, first, static_cast<int>(std::min<std::int64_t>(batch_, windows - first))};
      gather_windows(buffers.samples, batch_, buffers.smoothed, range, window_, stride_, stream);
      plan_.execute(buffers.spectra, buffers.samples, buffers.work, stream);
      binning_.add(sums.histogram, sums.clipped, sums.moments + 2 * first, buffers.spectra, range.count,
                   buffers.partials, stream);
    }
  }

 private:
  struct Buffers {
    SmoothedPlane smoothed;
    float* samples = nullptr;
    cufftComplex* spectra = nullptr;
    double* partials = nullptr;
    std::byte* work = nullptr;
  };

  Buffers lay_out(ScratchLayout& layout, const WindowBlock& block) const {
    const std::size_t batch = static_cast<std::size_t>(batch_);
    const std::size_t side = static_cast<std::size_t>(window_);
    Buffers buffers;
    buffers.smoothed = smoothed_plane_of(block, window_, stride_);
    buffers.smoothed.data = layout.take<float>(buffers.smoothed.floats());
    buffers.samples = layout.take<float>(batch * side * side);
    buffers.spectra = layout.take<cufftComplex>(batch * side * (side / 2 + 1));
    buffers.partials = layout.take<double>(binning_.partial_doubles(batch));
    buffers.work = layout.take<std::byte>(plan_.work_bytes());
    return buffers;
  }

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
