#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include <slidestream/error.hpp>

#include "cuda/spectrum/engines.hpp"
#include "cuda/spectrum/fused_layout.hpp"
#include "cuda/spectrum/fused_windows.hpp"
#include "cuda/spectrum/smoothing.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

constexpr std::int64_t word = sizeof(unsigned);

/// Copies of the histogram that fit the kernel's shared memory, at most two, with other statistics one; 0: not even
/// one.
int copies_for(const FusedBins& bins, const FusedKernel& kernel, const DeviceStatistics& statistics) {
  const std::int64_t of_rings = statistics.rings > 0 ? 2 * fused_rings * word : 0;
  const std::int64_t fitting = (kernel.histogram_bytes - of_rings) / (bins.count * bins.histograms * word);
  return static_cast<int>(std::min<std::int64_t>(fitting, statistics.counters > 0 ? 1 : 2));
}

/// Copies of the rings' sums that fit the rest, at most 16: as many as lanes that work on a column.
int ring_copies_for(const FusedBins& bins, const FusedKernel& kernel) {
  const std::int64_t rest = kernel.histogram_bytes - bins.count * bins.histograms * word;
  int copies = 16;
  while (copies > 1 && 2 * fused_rings * word * copies > rest) copies /= 2;
  return copies;
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
  const std::optional<FusedBins> bins = fused_bins(config);
  return bins && copies_for(*bins, *kernel, DeviceStatistics(config)) > 0;
}

class FusedWindowEngine final : public WindowEngine {
 public:
  FusedWindowEngine(const AnalysisConfig& config, const FusedKernel& kernel)
      : kernel_(kernel),
        teams_(kernel.prepare()),
        config_bins_(config.bins),
        bins_(fused_bins(config).value()),
        statistics_(config),
        copies_(copies_for(bins_, kernel, statistics_)),
        ring_copies_(ring_copies_for(bins_, kernel)),
        taps_(smoothing_taps(config, 0.5F)),  // two rows are separated by a sum and a difference, without halving
        name_(std::string("fused-256 ") + kernel.name) {}

  const char* name() const noexcept override { return name_.c_str(); }

  std::size_t scratch_bytes(std::int64_t, std::int64_t, const WindowBlock& block) const override {
    return FusedScratch(block, bins_).bytes;
  }

  void enqueue(const DeviceSums& sums, const DevicePlane& plane, const WindowBlock& block, std::span<std::byte> scratch,
               cudaStream_t stream) override {
    if (block.columns <= 0 || block.rows <= 0) {
      SLIDESTREAM_CUDA(cudaMemsetAsync(sums.histogram, 0, sizeof(std::uint64_t) * config_bins_, stream));
      SLIDESTREAM_CUDA(cudaMemsetAsync(sums.clipped, 0, sizeof(std::uint64_t), stream));
      clear_counters(sums, stream);
      return;
    }
    clear_counters(sums, stream);
    const FusedScratch buffers(block, bins_, scratch.data());
    if (buffers.bytes > scratch.size()) throw std::invalid_argument("the window engine's scratch is too small");

    smooth(buffers.smoothed, plane, taps_, stream);
    SLIDESTREAM_CUDA(
        cudaMemsetAsync(buffers.histogram, 0, sizeof(std::uint64_t) * bins_.count * bins_.histograms, stream));
    SLIDESTREAM_CUDA(cudaMemsetAsync(buffers.moments, 0, sizeof(std::int64_t) * buffers.moment_count, stream));
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
    if (statistics_.rings > 0) {
      task.more.rings = sums.counters + statistics_.first_ring;
      task.more.ring_scale = static_cast<float>(std::ldexp(decibels_per_octave, statistics_.radial_bits));
      task.more.ring_copies = ring_copies_;
    }
    if (statistics_.split) {
      task.more.tissue = sums.tissue;
      task.more.tissue_histogram = buffers.histogram + bins_.count;
    }
    kernel_.launch(task, teams_, stream);
    finish_fused(sums, task, bins_.first, config_bins_, stream);
    if (statistics_.split) {
      auto* const counters = reinterpret_cast<std::uint64_t*>(sums.counters);
      fold_histogram(counters + statistics_.tissue_histogram, counters + statistics_.tissue_clipped,
                     task.more.tissue_histogram, task, bins_.first, config_bins_, stream);
    }
  }

 private:
  void clear_counters(const DeviceSums& sums, cudaStream_t stream) const {
    if (statistics_.counters == 0) return;
    SLIDESTREAM_CUDA(cudaMemsetAsync(sums.counters, 0, sizeof(std::int64_t) * statistics_.counters, stream));
  }

  const FusedKernel& kernel_;
  int teams_;
  int config_bins_;
  FusedBins bins_;
  DeviceStatistics statistics_;
  int copies_;
  int ring_copies_;
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
