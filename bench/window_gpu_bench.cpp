// Milliseconds a slide for each step from luminance to spectral statistics on the current GPU:
//   window_gpu_bench [--json FILE] [--width N] [--height N] [--repeats N] [--only NAME]
// The plane is tissue-like noise, made on the host and laid out in device memory. Figures are medians.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cuda/spectrum/engines.hpp"
#include "cuda/spectrum/smoothing.hpp"
#include "cuda/spectrum/window_engine.hpp"
#include "gpu_steps.hpp"
#include "runtime/cuda/check.hpp"

namespace {

using namespace slidestream;
using namespace slidestream::bench;
using runtime::cuda::DeviceMemory;

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        pitch_((options.width + 63) / 64 * 64),
        pixels_(static_cast<std::size_t>(pitch_ * options.height)),
        sums_((static_cast<std::size_t>(config_.bins) + 1) * sizeof(std::uint64_t)) {
    const auto along = [&](std::int64_t size) { return (size - config_.window) / config_.stride + 1; };
    block_ = {0, along(options.width), 0, along(options.height)};
    plane_ = {at<std::uint8_t>(pixels_), pitch_, 0, 0, options.width, options.height, options.width, options.height};
    fill_with_tissue(pixels_.bytes().data(), pitch_, options.width, options.height);
    moments_ = std::make_unique<DeviceMemory>(static_cast<std::size_t>(block_.columns * block_.rows) * 16);
    SLIDESTREAM_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~Bench() { SLIDESTREAM_CUDA_NOEXCEPT(cudaStreamDestroy(stream_)); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  const WindowBlock& block() const { return block_; }

  Figure smoothing() {
    cuda::SmoothedPlane out = cuda::smoothed_plane_of(block_, config_.window, config_.stride);
    const DeviceMemory memory(out.floats() * sizeof(float));
    out.data = at<float>(memory);
    const cuda::SmoothingTaps taps = cuda::smoothing_taps(config_, 1.0F);
    return measure("smooth_ms", options_.repeats, stream_, [&] { cuda::smooth(out, plane_, taps, stream_); });
  }

  /// The whole of an engine less the smoothing.
  Figure windows(const std::string& name, cuda::WindowEngine& engine, const Figure& smoothing) {
    const DeviceMemory scratch(engine.scratch_bytes(plane_.width, plane_.height, block_));
    const cuda::DeviceSums sums = {at<std::uint64_t>(sums_), at<std::uint64_t>(sums_) + config_.bins,
                                   at<double>(*moments_)};
    Figure figure = measure(name, options_.repeats, stream_,
                            [&] { engine.enqueue(sums, plane_, block_, scratch.bytes(), stream_); });
    for (double* time : {&figure.median, &figure.least, &figure.most}) *time -= smoothing.median;
    return figure;
  }

  const AnalysisConfig& config() const { return config_; }

 private:
  Options options_;
  AnalysisConfig config_;
  std::int64_t pitch_;
  DeviceMemory pixels_;
  DeviceMemory sums_;
  std::unique_ptr<DeviceMemory> moments_;
  WindowBlock block_;
  cuda::DevicePlane plane_;
  cudaStream_t stream_ = nullptr;
};

Figures run(const Options& options) {
  Bench bench(options);
  std::printf("%lld windows\n", static_cast<long long>(bench.block().columns) * bench.block().rows);
  Figures figures(options);
  const Figure smoothing = bench.smoothing();
  figures.add(smoothing, 5.5);
  if (figures.wanted("cufft_windows_ms")) {
    const auto engine = cuda::make_window_engine(bench.config(), cuda::WindowEngineKind::cufft);
    figures.add(bench.windows("cufft_windows_ms", *engine, smoothing), 125.0);
  }
  if (figures.wanted("fused_windows_ms")) {
    const auto engine = cuda::make_fused_window_engine(bench.config());
    figures.add(bench.windows("fused_windows_ms", *engine, smoothing), 16.0);
  }
  if (figures.wanted("portable_windows_ms")) {  // what an A40 would run, within its limits of shared memory
    const auto engine = cuda::make_fused_window_engine(bench.config(), cuda::FusedBuild::portable);
    figures.add(bench.windows("portable_windows_ms", *engine, smoothing), std::nullopt);
  }
  return figures;
}

}  // namespace

int main(int argc, char** argv) { return bench::measure_steps(argc, argv, run); }
