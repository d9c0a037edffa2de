// The spectrum stage and its parts, one thread: items are windows, bytes are the pixels that they bring anew. Vector
// units are named by their bit in Highway's masks, and skipped where the machine lacks them.
#include <benchmark/benchmark.h>
#include <hwy/highway.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "fftw_dft_2d.hpp"
#include "spectrum/aligned_buffer.hpp"
#include "spectrum/engine.hpp"
#include "spectrum/engines.hpp"
#include "spectrum/plain_kernels.hpp"
#include "spectrum/smoothing.hpp"

namespace {

using namespace slidestream;

/// Dispatches to one vector unit while it lives; 0 is the best that the machine has.
class ForcedTarget {
 public:
  explicit ForcedTarget(std::int64_t target) : available_(target == 0 || (hwy::SupportedTargets() & target) != 0) {
    if (available_) choose(target);
  }
  ~ForcedTarget() { choose(0); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;

  bool available() const { return available_; }

 private:
  static void choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  bool available_;
};

/// Stained texture with glass around it, 2048 x 2048: two thirds texture.
const std::vector<std::uint8_t>& pixels() {
  constexpr int side = 2048;
  static const std::vector<std::uint8_t> image = [] {
    std::vector<std::uint8_t> made(side * side);
    std::uint32_t state = 1;
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        state = state * 1664525U + 1013904223U;
        const double noise = static_cast<double>(state >> 24) / 16.0;
        const double wave = std::sin(0.031 * x + 0.017 * y) + std::sin(0.11 * x) * std::sin(0.07 * y);
        const double value = x < side / 3 ? 243.0 : 150.0 + 30.0 * wave + noise;
        made[static_cast<std::size_t>(y) * side + static_cast<std::size_t>(x)] = static_cast<std::uint8_t>(value);
      }
    }
    return made;
  }();
  return image;
}

LuminancePlane plane() {
  LuminancePlane all;
  all.data = pixels().data();
  all.pitch = all.width = all.height = all.image_width = all.image_height = 2048;
  return all;
}

void count_windows(benchmark::State& state, std::int64_t windows, std::int64_t new_pixels) {
  state.SetItemsProcessed(state.iterations() * windows);
  state.SetBytesProcessed(state.iterations() * windows * new_pixels);
}

using Maker = std::unique_ptr<SpectrumEngine> (*)(const AnalysisConfig&);

std::unique_ptr<SpectrumEngine> highway(const AnalysisConfig& config) {
  return make_spectrum_engine(config, EngineKind::highway);
}
std::unique_ptr<SpectrumEngine> kissfft(const AnalysisConfig& config) {
  return make_spectrum_engine(config, EngineKind::plain);
}
/// The plain engine with FFTW's transforms.
std::unique_ptr<SpectrumEngine> fftw(const AnalysisConfig& config) {
  return make_plain_engine(config, bench::make_fftw_dft_2d(config.window));
}

/// Smoothing, windows, transform, values and counting of every window.
void whole(benchmark::State& state, Maker make, std::int64_t target) {
  const ForcedTarget forced(target);
  if (!forced.available()) {
    state.SkipWithError("this machine lacks the vector unit");
    return;
  }
  AnalysisConfig config;
  if (state.range(0) > 0) config.window = static_cast<int>(state.range(0));
  if (state.range(1) > 0) config.stride = static_cast<int>(state.range(1));
  const auto engine = make(config);
  const auto workspace = engine->make_workspace();
  SpectrumSums sums;
  sums.histogram.assign(static_cast<std::size_t>(config.bins), 0);
  const std::int64_t across = (2048 - config.window) / config.stride + 1;
  const WindowBlock block{0, across, 0, across};
  for (auto _ : state) engine->run(sums, {}, plane(), block, *workspace);
  state.SetLabel(engine->name());
  count_windows(state, block.columns * block.rows, config.stride * config.stride);
}

/// FFTW's transform and nothing else: the floor that the whole is measured against.
void transform(benchmark::State& state) {
  const int side = static_cast<int>(state.range(0));
  const std::size_t area = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  const auto dft = bench::make_fftw_dft_2d(side);
  AlignedBuffer<float> window(area);
  AlignedBuffer<std::complex<float>> spectrum(area);
  for (std::size_t i = 0; i < area; ++i) window.data()[i] = static_cast<float>(pixels()[i % pixels().size()]);
  for (auto _ : state) {
    dft->forward(spectrum.data(), window.data(), nullptr);
    benchmark::DoNotOptimize(spectrum.data());
    benchmark::ClobberMemory();
  }
  count_windows(state, 1, static_cast<std::int64_t>(area));
}

/// The plain engine's smoothing of the 128 rows that a row of windows brings.
void smooth(benchmark::State& state) {
  constexpr std::size_t width = 1024;
  constexpr int radius = 3;
  constexpr std::size_t rows = 128;
  const PlainKernels kernels = plain_kernels();
  const GaussianTaps exact = gaussian_taps(radius, 1.4);
  const std::vector<float> taps(exact.begin(), exact.end());
  AlignedBuffer<float> line(width + 2 * radius + 2 * row_slack);
  AlignedBuffer<float> out(width + row_slack);
  for (auto _ : state) {
    for (std::size_t y = 0; y < rows; ++y) {
      const std::uint8_t* around[2 * radius + 1];
      for (std::size_t i = 0; i < 2 * radius + 1; ++i) around[i] = pixels().data() + (y + i) * 2048;
      kernels.smooth_vertically(line.data(), around, taps.data(), radius, width + 2 * radius);
      kernels.smooth_horizontally(out.data(), line.data() + radius, taps.data(), radius, width);
      benchmark::DoNotOptimize(out.data());
      benchmark::ClobberMemory();
    }
  }
  count_windows(state, static_cast<std::int64_t>(width) / 128, 128 * 128);
}

/// The plain engine's values and bins of a 256 x 256 window's half spectrum.
void bin(benchmark::State& state) {
  constexpr std::size_t half = 129;
  std::vector<std::complex<float>> row(half + row_slack);
  std::vector<float> values(half + row_slack);
  std::vector<std::int32_t> bins(half + row_slack);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = {static_cast<float>(i * i), static_cast<float>(i % 7)};
  const PlainKernels kernels = plain_kernels();
  const Binning binning{ValueKind::log1p_db, 0.0F, 10.0F, 1500};
  for (auto _ : state) {
    for (int y = 0; y < 256; ++y) {
      benchmark::DoNotOptimize(kernels.bin_row(values.data(), bins.data(), row.data(), half, binning));
    }
  }
  count_windows(state, 1, 128 * 128);
}

BENCHMARK(smooth)->Name("spectrum/smooth")->Unit(benchmark::kMicrosecond);
BENCHMARK(transform)->Name("spectrum/transform")->Arg(64)->Arg(256)->Arg(512)->Unit(benchmark::kMicrosecond);
BENCHMARK(bin)->Name("spectrum/bin")->Unit(benchmark::kMicrosecond);
/// Windows and strides: the default, other strides of it, other windows.
void sizes(benchmark::internal::Benchmark* whole_engine) {
  whole_engine->ArgNames({"window", "stride"})->Unit(benchmark::kMillisecond);
  for (const auto& [window, stride] : {std::pair{256, 128},
                                       {256, 64},
                                       {256, 100},
                                       {256, 256},
                                       {16, 8},
                                       {32, 16},
                                       {64, 32},
                                       {64, 64},
                                       {128, 64},
                                       {512, 256},
                                       {512, 128},
                                       {1024, 512}}) {
    whole_engine->Args({window, stride});
  }
}
BENCHMARK_CAPTURE(whole, highway, highway, 0)->Name("spectrum/highway")->Apply(sizes);
BENCHMARK_CAPTURE(whole, fftw, fftw, 0)->Name("spectrum/fftw")->Apply(sizes);
BENCHMARK_CAPTURE(whole, kissfft, kissfft, 0)->Name("spectrum/kissfft")->Apply(sizes);
#if HWY_ARCH_X86
BENCHMARK_CAPTURE(whole, avx3, highway, HWY_AVX3)->Name("spectrum/highway-avx3")->Apply(sizes);
BENCHMARK_CAPTURE(whole, avx2, highway, HWY_AVX2)->Name("spectrum/highway-avx2")->Apply(sizes);
BENCHMARK_CAPTURE(whole, sse4, highway, HWY_SSE4)->Name("spectrum/highway-sse4")->Apply(sizes);
#endif

}  // namespace
