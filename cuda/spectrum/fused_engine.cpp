#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include <slidestream/error.hpp>

#include "cuda/spectrum/engines.hpp"
#include "cuda/spectrum/fused_windows.hpp"
#include "cuda/spectrum/scratch_layout.hpp"
#include "cuda/spectrum/smoothing.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

constexpr int window = 256;
constexpr int stride = 128;

/// Bins for all values that there can be, numbered from 0: those of the configuration and as many beyond its range as
/// it takes. So the kernel needs neither clamp nor test; what lies outside is folded in when all is counted.
struct AllBins {
  int first = 0;  ///< what its number 0 is in the configuration
  int count = 0;
  double per_octave = 0.0;
};

std::optional<AllBins> all_bins(const AnalysisConfig& config) {
  const double per_decibel = config.bins / (config.range[1] - config.range[0]);
  const double zero = -config.range[0] * per_decibel;  // where 0 dB falls
  const double most = decibels_per_octave * fused_most_octaves * per_decibel;
  constexpr double limit = 1 << 20;
  if (zero != std::floor(zero) || std::abs(zero) > limit || most > limit) return std::nullopt;
  // One more on either side, for the last bit of an approximation.
  return AllBins{static_cast<int>(zero) - 1, static_cast<int>(most) + 3, decibels_per_octave * per_decibel};
}

/// Copies of the histogram that fit the kernel's shared memory, at most two; 0: not even one.
int copies_for(const AllBins& bins, const FusedKernel& kernel) {
  const std::int64_t bytes = static_cast<std::int64_t>(bins.count) * static_cast<std::int64_t>(sizeof(unsigned));
  return static_cast<int>(std::min<std::int64_t>(kernel.histogram_bytes / bytes, 2));
}

/// The build for the current device; null when it can't run it.
const FusedKernel* kernel_for(FusedBuild build) {
  int device = 0;
  int major = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  if (build == FusedBuild::automatic) build = major == 9 ? FusedBuild::hopper : FusedBuild::portable;
  if (build == FusedBuild::hopper) return major == 9 ? &fused_hopper_kernel() : nullptr;
  return major >= 8 ? &fused_portable_kernel() : nullptr;
}

bool takes(const AnalysisConfig& config, const FusedKernel* kernel) {
  if (kernel == nullptr) return false;
  if (config.window != window || config.stride != stride || config.value != ValueKind::log1p_db) return false;
  const std::optional<AllBins> bins = all_bins(config);
  return bins && copies_for(*bins, *kernel) > 0;
}

class FusedWindowEngine final : public WindowEngine {
 public:
  FusedWindowEngine(const AnalysisConfig& config, const FusedKernel& kernel)
      : kernel_(kernel),
        teams_(kernel.prepare()),
        config_bins_(config.bins),
        bins_(all_bins(config).value()),
        copies_(copies_for(bins_, kernel)),
        taps_(smoothing_taps(config, 0.5F)),  // two rows are separated by a sum and a difference, without halving
        name_(std::string("fused-256 ") + kernel.name) {}

  const char* name() const noexcept override { return name_.c_str(); }

  std::size_t scratch_bytes(std::int64_t, std::int64_t, const WindowBlock& block) const override {
    ScratchLayout layout;
    static_cast<void>(lay_out(layout, block));
    return layout.bytes();
  }

  void enqueue(const DeviceSums& sums, const DevicePlane& plane, const WindowBlock& block, std::span<std::byte> scratch,
               cudaStream_t stream) override {
    if (block.columns <= 0 || block.rows <= 0) {
      SLIDESTREAM_CUDA(cudaMemsetAsync(sums.histogram, 0, sizeof(std::uint64_t) * config_bins_, stream));
      SLIDESTREAM_CUDA(cudaMemsetAsync(sums.clipped, 0, sizeof(std::uint64_t), stream));
      return;
    }
    ScratchLayout layout(scratch.data());
    const Buffers buffers = lay_out(layout, block);
    if (layout.bytes() > scratch.size()) throw std::invalid_argument("the window engine's scratch is too small");

    smooth(buffers.smoothed, plane, taps_, stream);
    SLIDESTREAM_CUDA(cudaMemsetAsync(buffers.histogram, 0, sizeof(std::uint64_t) * bins_.count, stream));
    SLIDESTREAM_CUDA(cudaMemsetAsync(buffers.moments, 0, sizeof(std::int64_t) * moment_count(block), stream));
    FusedTask task;
    task.plane = buffers.smoothed.data;
    task.pitch = buffers.smoothed.pitch;
    task.columns = static_cast<int>(block.columns);
    task.rows = static_cast<int>(block.rows);
    task.bins_per_octave = static_cast<float>(bins_.per_octave);
    task.bin_of_zero = 1.0F;  // the first bin lies below 0 dB
    task.bins = bins_.count;
    task.copies = copies_;
    task.histogram = buffers.histogram;
    task.moments = buffers.moments;
    kernel_.launch(task, teams_, stream);
    finish_fused(sums, task, bins_.first, config_bins_, stream);
  }

 private:
  struct Buffers {
    SmoothedPlane smoothed;
    std::uint64_t* histogram = nullptr;
    std::int64_t* moments = nullptr;
  };

  static std::size_t moment_count(const WindowBlock& block) {
    return 2 * static_cast<std::size_t>(block.columns) * static_cast<std::size_t>(block.rows);
  }

  Buffers lay_out(ScratchLayout& layout, const WindowBlock& block) const {
    Buffers buffers;
    if (block.columns <= 0 || block.rows <= 0) return buffers;
    buffers.smoothed = smoothed_plane_of(block, window, stride);
    buffers.smoothed.data = layout.take<float>(buffers.smoothed.floats());
    buffers.histogram = layout.take<std::uint64_t>(static_cast<std::size_t>(bins_.count));
    buffers.moments = layout.take<std::int64_t>(moment_count(block));
    return buffers;
  }

  const FusedKernel& kernel_;
  int teams_;
  int config_bins_;
  AllBins bins_;
  int copies_;
  SmoothingTaps taps_;
  std::string name_;
};

}  // namespace

bool fused_window_engine_takes(const AnalysisConfig& config) {
  return takes(config, kernel_for(FusedBuild::automatic));
}

std::unique_ptr<WindowEngine> make_fused_window_engine(const AnalysisConfig& config, FusedBuild build) {
  const FusedKernel* kernel = kernel_for(build);
  if (!takes(config, kernel)) {
    throw ConfigError(
        "analysis: the fused window engine takes window 256, stride 128, value log1p_db, a range that begins a whole "
        "number of bins from 0 and bins of 0.1 dB or wider (somewhat finer ones where shared memory allows), on GPUs "
        "from compute capability 8.0 up");
  }
  return std::make_unique<FusedWindowEngine>(config, *kernel);
}

}  // namespace slidestream::cuda
