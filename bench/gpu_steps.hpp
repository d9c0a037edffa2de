#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/resources.hpp"

/// \file
/// What benchmarks share that measure single steps on the current GPU: options, figures, their report, and pixels to
/// work on.

namespace slidestream::bench {

struct Options {
  std::string json;
  std::string only;
  std::int64_t width = 65664;
  std::int64_t height = 43264;
  int repeats = 20;
};

/// What is measured, in milliseconds.
struct Figure {
  std::string name;
  double median = 0.0;
  double least = 0.0;
  double most = 0.0;
  std::string note = {};                        ///< for the report, behind the rest of the line
  std::optional<double> target = std::nullopt;  ///< what it should be at most at the default size
};

/// Figures as they come: each is printed.
class Figures {
 public:
  explicit Figures(const Options& options) : only_(options.only) {}
  /// Whether the options ask for it.
  bool wanted(const std::string& name) const { return only_.empty() || only_ == name; }
  void add(Figure figure, std::optional<double> target);
  const std::vector<Figure>& all() const noexcept { return figures_; }

 private:
  std::string only_;
  std::vector<Figure> figures_;
};

template <class T>
T* at(const runtime::cuda::DeviceMemory& memory) {
  return reinterpret_cast<T*>(memory.bytes().data());
}

/// Fills rows of bytes in device memory with blobs of several sizes, and grain: about the spectrum of stained tissue.
void fill_with_tissue(std::byte* rows, std::int64_t pitch, std::int64_t width, std::int64_t height);

/// The times of what `enqueue` puts on the stream, after two turns for warming up.
Figure measure(const std::string& name, int repeats, cudaStream_t stream, const std::function<void()>& enqueue);

/// A program's main: reads the options, runs, and writes the report.
int measure_steps(int argc, char** argv, const std::function<Figures(const Options&)>& run);

}  // namespace slidestream::bench
