#include "cuda/spectrum/window_batch.hpp"

#include <algorithm>

#include "cuda/spectrum/value.cuh"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

struct GatherShape {
  static constexpr int threads = 256;
  static constexpr int vectors = 8;  ///< of a thread
};

template <int width>
struct Vector;
template <>
struct Vector<1> {
  using type = float;
};
template <>
struct Vector<2> {
  using type = float2;
};
template <>
struct Vector<4> {
  using type = float4;
};

struct GatherTask {
  const float* plane;
  std::ptrdiff_t pitch;
  int window;
  int stride;
  std::int64_t columns;  ///< windows of a row of the block
  std::int64_t first;
  int count;
};

/// blockIdx.x counts windows, blockIdx.y parts of them.
template <int width>
__global__ void __launch_bounds__(GatherShape::threads) gather(float* out, GatherTask task) {
  using Floats = typename Vector<width>::type;
  const unsigned per_row = static_cast<unsigned>(task.window) / width;
  const unsigned total = per_row * static_cast<unsigned>(task.window);
  const bool filled = blockIdx.x < static_cast<unsigned>(task.count);
  const std::int64_t window = task.first + blockIdx.x;
  const std::int64_t wy = window / task.columns;
  const float* const from = task.plane + (wy * task.pitch + (window - wy * task.columns)) * task.stride;
  Floats* const to = reinterpret_cast<Floats*>(out) + static_cast<std::size_t>(blockIdx.x) * total;
  const unsigned begin = blockIdx.y * (GatherShape::threads * GatherShape::vectors) + threadIdx.x;
#pragma unroll
  for (int i = 0; i < GatherShape::vectors; ++i) {
    const unsigned at = begin + i * GatherShape::threads;
    if (at >= total) return;
    const unsigned y = at / per_row;
    const unsigned x = (at - y * per_row) * width;
    to[at] = filled ? *reinterpret_cast<const Floats*>(from + y * task.pitch + x) : Floats{};
  }
}

struct BinningShape {
  static constexpr int threads = 512;
  static constexpr int warps = threads / 32;
  static constexpr int blocks_per_multiprocessor = 2;
  static constexpr int part_coefficients = 2048;          ///< about as many a warp
  static constexpr std::size_t shared_bytes = 48 * 1024;  ///< every device has these
  static constexpr int most_copies = 4;
};

struct BinningTask {
  const float2* spectra;
  int window;
  int windows;
  unsigned parts;
  int rows_per_part;
  float low;
  float scale;
  int bins;
  int copies;
  const std::uint8_t* only;  ///< windows for which it isn't 0 are binned; null: all are
};

__device__ double sum_of_warp(double value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
  return value;
}

/// One warp bins one part of one window: some rows of its spectrum. Returns how many values lay outside the range.
template <ValueKind kind, class Count>
__device__ unsigned bin_part(const BinningTask& task, unsigned window, unsigned part, double* partial, Count count) {
  constexpr int values_in_float = 8;  // so many are added before their sum goes into double precision
  const int lane = threadIdx.x % 32;
  const int columns = task.window / 2 + 1;
  const int first_row = static_cast<int>(part) * task.rows_per_part;
  const int rows = min(task.rows_per_part, task.window - first_row);
  const int total = rows * columns;
  const float2* from = task.spectra + (static_cast<std::size_t>(window) * task.window + first_row) * columns;
  const float end = static_cast<float>(task.bins);
  const int step = 32 % columns;
  int column = lane % columns;
  unsigned outside = 0;
  float some = 0.0F;
  float some_squares = 0.0F;
  const auto add = [&](float2 f) {
    const float value = value_of<kind>(f);
    // Columns 0 and N/2 have no mirror image on the other side: they count once, all others twice.
    const unsigned weight = column == 0 || column == columns - 1 ? 1 : 2;
    const float position = (value - task.low) * task.scale;
    if (!(position >= 0.0F && position < end)) outside += weight;
    count(min(static_cast<int>(fminf(fmaxf(position, 0.0F), end)), task.bins - 1), weight);
    const float weighted = static_cast<float>(weight) * value;
    some += weighted;
    some_squares = fmaf(weighted, value, some_squares);
    column += step;
    if (column >= columns) column -= columns;
  };
  double sum = 0.0;
  double squares = 0.0;
  const auto add_some = [&] {
    sum += some;
    squares += some_squares;
    some = 0.0F;
    some_squares = 0.0F;
  };
  float2 first = lane < total ? from[lane] : float2{};
  if (lane == 0 && part == 0) first.x += static_cast<float>(luminance_offset) * task.window * task.window;
  if (lane < total) add(first);
  int at = lane + 32;
  for (; at + 32 * (values_in_float - 1) < total; at += 32 * values_in_float) {
    float2 f[values_in_float];
#pragma unroll
    for (int i = 0; i < values_in_float; ++i) f[i] = from[at + 32 * i];
#pragma unroll
    for (int i = 0; i < values_in_float; ++i) add(f[i]);
    add_some();
  }
  for (; at < total; at += 32) add(from[at]);
  add_some();
  sum = sum_of_warp(sum);
  squares = sum_of_warp(squares);
  if (lane == 0) {
    partial[0] = sum;
    partial[1] = squares;
  }
  return outside;
}

/// Warps take (window, part) in turn; a block keeps its counts in shared memory until it is done. With `some`, only the
/// task's windows.
template <ValueKind kind, bool shared_counts, bool some>
__global__ void __launch_bounds__(BinningShape::threads)
    bin_spectra(unsigned long long* histogram, unsigned long long* clipped, double* partials, BinningTask task) {
  extern __shared__ unsigned counts[];  // `copies` interleaved histograms: neighbours often fall into one bin
  const int cells = shared_counts ? task.bins * task.copies : 0;
  for (int i = threadIdx.x; i < cells; i += BinningShape::threads) counts[i] = 0;
  __syncthreads();

  unsigned long long outside = 0;
  const unsigned units = static_cast<unsigned>(task.windows) * task.parts;
  const unsigned copy = threadIdx.x % task.copies;
  for (unsigned unit = blockIdx.x * BinningShape::warps + threadIdx.x / 32; unit < units;
       unit += gridDim.x * BinningShape::warps) {
    if constexpr (some) {
      if (task.only[unit / task.parts] == 0) continue;
    }
    const auto count = [&](int bin, unsigned weight) {
      if constexpr (shared_counts) {
        atomicAdd(counts + bin * task.copies + copy, weight);
      } else {
        atomicAdd(histogram + bin, static_cast<unsigned long long>(weight));
      }
    };
    outside += bin_part<kind>(task, unit / task.parts, unit % task.parts, partials + 2 * std::size_t{unit}, count);
  }
  if (outside > 0) atomicAdd(clipped, outside);

  __syncthreads();
  for (int bin = threadIdx.x; bin < cells / task.copies; bin += BinningShape::threads) {
    unsigned long long sum = 0;
    for (int i = 0; i < task.copies; ++i) sum += counts[bin * task.copies + i];
    if (sum > 0) atomicAdd(histogram + bin, sum);
  }
}

constexpr int finish_threads = 128;

/// Adds the parts of each window in order.
__global__ void __launch_bounds__(finish_threads)
    add_parts(double* moments, const double* partials, int windows, unsigned parts) {
  const int at = blockIdx.x * finish_threads + threadIdx.x;  // of 2 x windows: sums and squares alternate
  if (at >= 2 * windows) return;
  double sum = 0.0;
  for (unsigned part = 0; part < parts; ++part) {
    sum += partials[(static_cast<std::size_t>(at / 2) * parts + part) * 2 + at % 2];
  }
  moments[at] = sum;
}

using BinningKernel = void (*)(unsigned long long*, unsigned long long*, double*, BinningTask);

template <bool shared_counts, bool some>
BinningKernel binning_kernel(ValueKind kind) {
  switch (kind) {
    case ValueKind::log1p_db:
      return bin_spectra<ValueKind::log1p_db, shared_counts, some>;
    case ValueKind::db:
      return bin_spectra<ValueKind::db, shared_counts, some>;
    case ValueKind::linear:
      break;
  }
  return bin_spectra<ValueKind::linear, shared_counts, some>;
}

unsigned blocks_for(std::size_t count, std::size_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace

void gather_windows(float* out, int batch, const SmoothedPlane& plane, const WindowRange& range, int window, int stride,
                    cudaStream_t stream) {
  const GatherTask task = {plane.data, plane.pitch, window, stride, range.block.columns, range.first, range.count};
  const auto launch = [&](auto kernel, int width) {
    constexpr std::size_t per_block = GatherShape::threads * GatherShape::vectors;
    const dim3 grid(static_cast<unsigned>(batch),
                    blocks_for(static_cast<std::size_t>(window / width) * static_cast<std::size_t>(window), per_block));
    kernel<<<grid, GatherShape::threads, 0, stream>>>(out, task);
  };
  if (window % 4 == 0 && stride % 4 == 0) {
    launch(gather<4>, 4);
  } else if (stride % 2 == 0) {
    launch(gather<2>, 2);
  } else {
    launch(gather<1>, 1);
  }
  SLIDESTREAM_CUDA_LAUNCHED();
}

SpectrumBinning::SpectrumBinning(const AnalysisConfig& config)
    : value_(config.value),
      low_(static_cast<float>(config.range[0])),
      scale_(static_cast<float>(config.bins / (config.range[1] - config.range[0]))),
      bins_(config.bins),
      window_(config.window) {
  const int columns = config.window / 2 + 1;
  const int wanted = (config.window * columns + BinningShape::part_coefficients - 1) / BinningShape::part_coefficients;
  rows_per_part_ = std::max((config.window + wanted - 1) / wanted, 1);
  parts_ = static_cast<unsigned>((config.window + rows_per_part_ - 1) / rows_per_part_);
  const std::size_t fitting = BinningShape::shared_bytes / (sizeof(unsigned) * static_cast<std::size_t>(bins_));
  histogram_copies_ = static_cast<int>(std::min<std::size_t>(fitting, BinningShape::most_copies));
  int device = 0;
  int multiprocessors = 0;
  SLIDESTREAM_CUDA(cudaGetDevice(&device));
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  most_blocks_ = multiprocessors * BinningShape::blocks_per_multiprocessor;
}

void SpectrumBinning::count(std::uint64_t* histogram, std::uint64_t* clipped, const float2* spectra, int windows,
                            double* partials, const std::uint8_t* only, cudaStream_t stream) const {
  const bool shared = histogram_copies_ > 0;
  const BinningTask task = {
      spectra, window_, windows, parts_, rows_per_part_, low_, scale_, bins_, std::max(histogram_copies_, 1), only};
  const std::size_t bytes = shared ? sizeof(unsigned) * static_cast<std::size_t>(bins_ * histogram_copies_) : 0;
  const unsigned wanted = blocks_for(static_cast<std::size_t>(windows) * parts_, BinningShape::warps);
  const unsigned blocks = std::min(wanted, static_cast<unsigned>(most_blocks_));
  const BinningKernel kernel =
      only == nullptr ? (shared ? binning_kernel<true, false>(value_) : binning_kernel<false, false>(value_))
                      : (shared ? binning_kernel<true, true>(value_) : binning_kernel<false, true>(value_));
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  kernel<<<blocks, BinningShape::threads, bytes, stream>>>(
      reinterpret_cast<unsigned long long*>(histogram), reinterpret_cast<unsigned long long*>(clipped), partials, task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

void SpectrumBinning::add(std::uint64_t* histogram, std::uint64_t* clipped, double* moments, const float2* spectra,
                          int windows, double* partials, cudaStream_t stream) const {
  count(histogram, clipped, spectra, windows, partials, nullptr, stream);
  add_parts<<<blocks_for(2 * static_cast<std::size_t>(windows), finish_threads), finish_threads, 0, stream>>>(
      moments, partials, windows, parts_);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace slidestream::cuda
