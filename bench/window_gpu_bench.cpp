// Milliseconds a slide for each step from luminance to spectral statistics on the current GPU:
//   window_gpu_bench [--json FILE] [--width N] [--height N] [--repeats N] [--only NAME]
// The plane is tissue-like noise, made on the host and laid out in device memory. Figures are medians.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <slidestream/error.hpp>

#include "cuda/spectrum/engines.hpp"
#include "cuda/spectrum/smoothing.hpp"
#include "cuda/spectrum/window_engine.hpp"
#include "runtime/cuda/check.hpp"

namespace {

using namespace slidestream;

struct Options {
  std::string json;
  std::string only;
  std::int64_t width = 65664;
  std::int64_t height = 43264;
  int repeats = 20;
};

/// What is measured, and what it should be on an H100 at the default size.
struct Figure {
  std::string name;
  double median = 0.0;
  double least = 0.0;
  double most = 0.0;
  std::optional<double> target;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes) : bytes_(bytes) { SLIDESTREAM_CUDA(cudaMalloc(&data_, bytes)); }
  ~DeviceMemory() { SLIDESTREAM_CUDA_NOEXCEPT(cudaFree(data_)); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::span<std::byte> bytes() const { return {as<std::byte>(), bytes_}; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Blobs of several sizes, and grain: about the spectrum of stained tissue.
std::vector<std::uint8_t> tissue_tile(int width, int height) {
  std::mt19937 random(7);
  const auto uniform = [&] { return static_cast<float>(random() >> 8) * 0x1p-24F; };
  std::vector<float> grey(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 150.0F);
  for (int cell = 64; cell >= 2; cell /= 2) {
    const int columns = width / cell + 2;
    std::vector<float> knots(static_cast<std::size_t>(columns) * static_cast<std::size_t>(height / cell + 2));
    for (float& knot : knots) knot = (uniform() - 0.5F) * 8.0F * std::sqrt(static_cast<float>(cell));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const float* knot = &knots[static_cast<std::size_t>(y / cell) * static_cast<std::size_t>(columns) +
                                   static_cast<std::size_t>(x / cell)];
        const float fx = static_cast<float>(x % cell) / static_cast<float>(cell);
        const float fy = static_cast<float>(y % cell) / static_cast<float>(cell);
        const float above = knot[0] + fx * (knot[1] - knot[0]);
        const float below = knot[columns] + fx * (knot[columns + 1] - knot[columns]);
        grey[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] +=
            above + fy * (below - above);
      }
    }
  }
  std::vector<std::uint8_t> tile(grey.size());
  std::transform(grey.begin(), grey.end(), tile.begin(), [&](float value) {
    return static_cast<std::uint8_t>(std::clamp(value + 6.0F * (uniform() - 0.5F), 0.0F, 255.0F));
  });
  return tile;
}

void fill_with_tissue(const cuda::DevicePlane& plane, std::uint8_t* pixels) {
  constexpr int width = 2303;  // odd, so that windows differ from one tile to the next
  constexpr int height = 1789;
  const std::vector<std::uint8_t> tile = tissue_tile(width, height);
  for (std::int64_t y = 0; y < plane.height; y += height) {
    for (std::int64_t x = 0; x < plane.width; x += width) {
      SLIDESTREAM_CUDA(cudaMemcpy2D(pixels + y * plane.pitch + x, static_cast<std::size_t>(plane.pitch), tile.data(),
                                    width, static_cast<std::size_t>(std::min<std::int64_t>(width, plane.width - x)),
                                    static_cast<std::size_t>(std::min<std::int64_t>(height, plane.height - y)),
                                    cudaMemcpyHostToDevice));
    }
  }
}

Figure measure(const std::string& name, int repeats, cudaStream_t stream, const std::function<void()>& enqueue) {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  SLIDESTREAM_CUDA(cudaEventCreate(&begin));
  SLIDESTREAM_CUDA(cudaEventCreate(&end));
  std::vector<double> times;
  for (int i = -2; i < repeats; ++i) {  // two for warming up
    SLIDESTREAM_CUDA(cudaEventRecord(begin, stream));
    enqueue();
    SLIDESTREAM_CUDA(cudaEventRecord(end, stream));
    SLIDESTREAM_CUDA(cudaEventSynchronize(end));
    float milliseconds = 0.0F;
    SLIDESTREAM_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i >= 0) times.push_back(milliseconds);
  }
  SLIDESTREAM_CUDA(cudaEventDestroy(begin));
  SLIDESTREAM_CUDA(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  return {name, times[times.size() / 2], times.front(), times.back(), std::nullopt};
}

std::string device_line() {
  int device = 0;
  cudaDeviceProp properties{};
  int clock = 0;
  int memory_clock = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&device));
  SLIDESTREAM_CUDA(cudaGetDeviceProperties(&properties, device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, device));
  return std::string(properties.name) + ", " + std::to_string(properties.multiProcessorCount) +
         " multiprocessors, at most " + std::to_string(clock / 1000) + " MHz, memory " +
         std::to_string(memory_clock / 1000) + " MHz";
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        pitch_((options.width + 63) / 64 * 64),
        pixels_(static_cast<std::size_t>(pitch_ * options.height)),
        sums_((static_cast<std::size_t>(config_.bins) + 1) * sizeof(std::uint64_t)) {
    const auto along = [&](std::int64_t size) { return (size - config_.window) / config_.stride + 1; };
    block_ = {0, along(options.width), 0, along(options.height)};
    plane_ = {pixels_.as<std::uint8_t>(), pitch_, 0, 0, options.width, options.height, options.width, options.height};
    fill_with_tissue(plane_, pixels_.as<std::uint8_t>());
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
    out.data = memory.as<float>();
    const cuda::SmoothingTaps taps = cuda::smoothing_taps(config_, 1.0F);
    return measure("smooth_ms", options_.repeats, stream_, [&] { cuda::smooth(out, plane_, taps, stream_); });
  }

  /// The whole of an engine less the smoothing.
  Figure windows(const std::string& name, cuda::WindowEngine& engine, const Figure& smoothing) {
    const DeviceMemory scratch(engine.scratch_bytes(plane_.width, plane_.height, block_));
    const cuda::DeviceSums sums = {sums_.as<std::uint64_t>(), sums_.as<std::uint64_t>() + config_.bins,
                                   moments_->as<double>()};
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

std::vector<Figure> run(const Options& options) {
  Bench bench(options);
  std::printf("%s\n%lld x %lld pixels, %lld windows, median of %d\n", device_line().c_str(),
              static_cast<long long>(options.width), static_cast<long long>(options.height),
              static_cast<long long>(bench.block().columns) * bench.block().rows, options.repeats);
  std::vector<Figure> figures;
  const auto add = [&](Figure figure, std::optional<double> target) {
    figure.target = target;
    std::printf("%-28s %8.3f ms (%.3f to %.3f)\n", figure.name.c_str(), figure.median, figure.least, figure.most);
    std::fflush(stdout);
    figures.push_back(std::move(figure));
  };
  const auto wanted = [&](const std::string& name) { return options.only.empty() || options.only == name; };
  add(bench.smoothing(), 5.5);
  if (wanted("cufft_windows_ms")) {
    const auto engine = cuda::make_window_engine(bench.config(), cuda::WindowEngineKind::cufft);
    add(bench.windows("cufft_windows_ms", *engine, figures.front()), 125.0);
  }
  if (wanted("fused_windows_ms")) {
    const auto engine = cuda::make_fused_window_engine(bench.config());
    add(bench.windows("fused_windows_ms", *engine, figures.front()), 16.0);
  }
  if (wanted("portable_windows_ms")) {  // what an A40 would run, within its limits of shared memory
    const auto engine = cuda::make_fused_window_engine(bench.config(), cuda::FusedBuild::portable);
    add(bench.windows("portable_windows_ms", *engine, figures.front()), std::nullopt);
  }
  return figures;
}

void write_json(const Options& options, const std::vector<Figure>& figures) {
  nlohmann::json report = {{"device", device_line()}, {"figures", nlohmann::json::array()}};
  const bool default_size = options.width == Options().width && options.height == Options().height;
  for (const Figure& figure : figures) {
    nlohmann::json entry = {{"name", figure.name}, {"value", figure.median}, {"unit", "ms"}, {"direction", "at_most"}};
    entry["target"] = nullptr;
    if (figure.target && default_size) entry["target"] = *figure.target;
    entry["note"] = std::to_string(options.width) + " x " + std::to_string(options.height) + " pixels, least " +
                    std::to_string(figure.least) + ", most " + std::to_string(figure.most);
    report["figures"].push_back(entry);
  }
  std::ofstream file(options.json);
  file << report.dump(2) << '\n';
  if (!file.flush()) throw OutputError(options.json + ": can't be written");
}

bool parse(Options& options, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (++i == argc) return false;
    const std::string value = argv[i];
    const auto number = [&] { return std::strtoll(value.c_str(), nullptr, 10); };
    if (name == "--json") {
      options.json = value;
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--width") {
      options.width = number();
    } else if (name == "--height") {
      options.height = number();
    } else if (name == "--repeats") {
      options.repeats = static_cast<int>(number());
    } else {
      return false;
    }
  }
  return options.width >= 256 && options.height >= 256 && options.repeats > 0;
}

}  // namespace

int main(int argc, char** argv) {
#ifndef NDEBUG
  std::fprintf(stderr, "%s: built without NDEBUG; build with CMAKE_BUILD_TYPE=Release to measure\n", argv[0]);
  return 2;
#else
  Options options;
  if (!parse(options, argc, argv)) {
    std::fprintf(stderr, "usage: %s [--json FILE] [--width N] [--height N] [--repeats N] [--only FIGURE]\n", argv[0]);
    return 2;
  }
  try {
    const std::vector<Figure> figures = run(options);
    if (!options.json.empty()) write_json(options, figures);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
  return 0;
#endif
}
