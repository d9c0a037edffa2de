#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/statistic.hpp>

#include "cuda/spectrum/engines.hpp"
#include "cuda/spectrum/window_engine.hpp"
#include "runtime/cuda/check.hpp"
#include "support/engine_cases.hpp"
#include "support/engine_runs.hpp"
#include "support/test_data.hpp"

/// \file
/// Running a window engine over an image, for the tests beside this file. All device memory that an engine is given
/// holds 0xFF bytes before: NaN, -1, white.

namespace slidestream::test {

/// False, with the line that CTest looks for, where there is no GPU.
inline bool gpu_is_there() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
  report_skipped("no GPU");
  return false;
}

/// What is tested.
enum class Engine { cufft, fused, portable };

inline std::unique_ptr<cuda::WindowEngine> make_engine(const AnalysisConfig& config, Engine engine) {
  if (engine == Engine::cufft) return cuda::make_window_engine(config, cuda::WindowEngineKind::cufft);
  if (engine == Engine::fused) return cuda::make_window_engine(config, cuda::WindowEngineKind::fused);
  return cuda::make_fused_window_engine(config, cuda::FusedBuild::portable);
}

/// Poisoned device memory.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 1)) {
    SLIDESTREAM_CUDA(cudaMalloc(&data_, bytes_));
    SLIDESTREAM_CUDA(cudaMemset(data_, 0xFF, bytes_));
  }
  ~DeviceBuffer() { SLIDESTREAM_CUDA_NOEXCEPT(cudaFree(data_)); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::span<std::byte> bytes() const { return {as<std::byte>(), bytes_}; }
  template <class T>
  std::vector<T> download() const {
    std::vector<T> out(bytes_ / sizeof(T));
    SLIDESTREAM_CUDA(cudaMemcpy(out.data(), data_, out.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Part of an image on the device. Its first pixel lies `shift` bytes off an aligned address.
class DeviceImage {
 public:
  DeviceImage(const Image& image, const Rectangle& part, std::int64_t shift = 0)
      : pitch_((part.right - part.left + shift + 63) / 64 * 64),
        memory_(static_cast<std::size_t>(pitch_ * (part.bottom - part.top))) {
    const std::size_t width = static_cast<std::size_t>(part.right - part.left);
    const std::size_t height = static_cast<std::size_t>(part.bottom - part.top);
    const std::uint8_t* from = image.pixels.data() + part.top * image.width + part.left;
    std::uint8_t* to = memory_.as<std::uint8_t>() + shift;
    SLIDESTREAM_CUDA(cudaMemcpy2D(to, static_cast<std::size_t>(pitch_), from, static_cast<std::size_t>(image.width),
                                  width, height, cudaMemcpyHostToDevice));
    plane_ = {to,          pitch_,      part.left, part.top, part.right - part.left, part.bottom - part.top,
              image.width, image.height};
  }

  const cuda::DevicePlane& plane() const { return plane_; }

 private:
  std::int64_t pitch_;
  DeviceBuffer memory_;
  cuda::DevicePlane plane_;
};

inline Rectangle whole(const Image& image) { return {0, 0, image.width, image.height}; }

/// Every third window is tissue here.
inline std::vector<std::uint8_t> some_tissue(const WindowBlock& block) {
  std::vector<std::uint8_t> tissue;
  for (std::int64_t row = block.first_row; row < block.first_row + block.rows; ++row) {
    for (std::int64_t column = block.first_column; column < block.first_column + block.columns; ++column) {
      tissue.push_back((row + column) % 3 == 0 ? 1 : 0);
    }
  }
  return tissue;
}

/// Adds a block's windows to `outcome`, as the compute stage does.
inline void run_block(Outcome& outcome, cuda::WindowEngine& engine, const cuda::DevicePlane& plane,
                      const WindowBlock& block, const AnalysisConfig& config) {
  const std::size_t windows = static_cast<std::size_t>(block.columns * block.rows);
  const DeviceBuffer histogram(static_cast<std::size_t>(config.bins) * sizeof(std::uint64_t));
  const DeviceBuffer clipped(sizeof(std::uint64_t));
  const DeviceBuffer moments(2 * windows * sizeof(double));
  const DeviceBuffer scratch(engine.scratch_bytes(plane.width, plane.height, block));
  cudaStream_t stream = nullptr;
  SLIDESTREAM_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const DeviceBuffer counters(statistic_counters(config) * sizeof(std::int64_t));
  const DeviceBuffer classes(windows);
  const std::vector<std::uint8_t> tissue = some_tissue(block);
  SLIDESTREAM_CUDA(cudaMemcpy(classes.as<std::uint8_t>(), tissue.data(), tissue.size(), cudaMemcpyHostToDevice));
  SLIDESTREAM_CUDA(cudaDeviceSynchronize());  // the stream doesn't wait for what stands above
  engine.enqueue({histogram.as<std::uint64_t>(), clipped.as<std::uint64_t>(), moments.as<double>(),
                  config.statistics.empty() ? nullptr : counters.as<std::int64_t>(), classes.as<std::uint8_t>()},
                 plane, block, scratch.bytes(), stream);
  SLIDESTREAM_CUDA(cudaStreamSynchronize(stream));
  SLIDESTREAM_CUDA(cudaStreamDestroy(stream));

  SpectrumSums part;
  part.histogram = histogram.download<std::uint64_t>();
  part.clipped = clipped.download<std::uint64_t>()[0];
  const std::vector<double> sums = moments.download<double>();
  if (!config.statistics.empty()) {
    for (const std::int64_t counter : counters.download<std::int64_t>()) part.counters.push_back(counter);
  }
  const std::uint64_t values = static_cast<std::uint64_t>(config.window) * static_cast<std::uint64_t>(config.window);
  for (std::size_t i = 0; i < windows; ++i) {
    part.add_window(sums[2 * i], sums[2 * i + 1], values);
    const double mean = sums[2 * i] / static_cast<double>(values);
    const double variance = sums[2 * i + 1] / static_cast<double>(values) - mean * mean;
    const std::size_t columns = static_cast<std::size_t>(block.columns);
    const std::size_t wx = static_cast<std::size_t>(block.first_column) + i % columns;
    const std::size_t wy = static_cast<std::size_t>(block.first_row) + i / columns;
    float* cell = outcome.map.values.data() + 2 * (wy * static_cast<std::size_t>(outcome.map.columns) + wx);
    cell[0] = static_cast<float>(mean);
    cell[1] = static_cast<float>(std::sqrt(std::max(variance, 0.0)));
  }
  outcome.sums += part;
}

/// All windows in one go.
inline Outcome run_whole(cuda::WindowEngine& engine, const Image& image, const AnalysisConfig& config) {
  Outcome outcome = empty_outcome(image, config);
  const DeviceImage on_device(image, whole(image));
  run_block(outcome, engine, on_device.plane(), all_windows(image, config), config);
  return outcome;
}

}  // namespace slidestream::test
