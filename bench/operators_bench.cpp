// Host kernels of the operators that make pixels, one thread: items are pixels, bytes are those read and written. The
// image is 4096 x 1024, made in strips of 256 rows as the graph does.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "operators/gaussian/gaussian.hpp"
#include "operators/sobel/sobel.hpp"
#include "operators/stain/stain.hpp"
#include "operators/tissue/outlines.hpp"
#include "operators/tissue/tissue.hpp"

namespace {

using namespace slidestream;

constexpr Size size = {4096, 1024};
constexpr std::int64_t strip = 256;
constexpr PixelFormat float_format = {SampleType::float32, 1};

struct Image {
  explicit Image(PixelFormat of, Size as_large = size)
      : format(of),
        extent(as_large),
        bytes(static_cast<std::size_t>(as_large.width * as_large.height) * of.pixel_bytes()) {}

  HostView rows(std::int64_t begin, std::int64_t end) {
    const auto pitch = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(extent.width) * format.pixel_bytes());
    return {bytes.data() + begin * pitch, pitch, {0, begin, extent.width, end - begin}, extent, format};
  }
  HostView whole() { return rows(0, extent.height); }

  PixelFormat format;
  Size extent;
  std::vector<std::byte> bytes;
};

/// Purple and pink islands on glass, with grain.
Image stained(PixelFormat format) {
  Image image(format);
  std::uint32_t state = 1;
  for (std::int64_t y = 0; y < size.height; ++y) {
    auto* row = image.rows(y, y + 1).row<std::uint8_t>(y);
    for (std::int64_t x = 0; x < size.width; ++x) {
      state = state * 1664525U + 1013904223U;
      const double grain = 0.9 + static_cast<double>(state >> 24) / 1280.0;
      const double island = std::sin(0.004 * static_cast<double>(x)) + std::cos(0.011 * static_cast<double>(y));
      const double nuclei = std::sin(0.13 * static_cast<double>(x)) * std::sin(0.17 * static_cast<double>(y));
      const double h = island > 0.0 && nuclei > 0.3 ? 0.9 * grain : 0.0;
      const double e = island > 0.0 ? 0.5 * grain : 0.0;
      const double densities[3] = {0.56 * h + 0.22 * e, 0.72 * h + 0.80 * e, 0.41 * h + 0.56 * e};
      for (int c = 0; c < format.channels; ++c) {
        *row++ = static_cast<std::uint8_t>(245.0 * std::exp(-densities[c]) - 3.0 * grain);
      }
    }
  }
  return image;
}

Image& luminance() {
  static Image image = stained(luminance_format);
  return image;
}
Image& rgb() {
  static Image image = stained(rgb_format);
  return image;
}

/// The whole image, strip by strip.
template <class Kernel>
void in_strips(benchmark::State& state, Image& in, PixelFormat format, const Kernel& kernel) {
  Image out(format);
  for (auto _ : state) {
    for (std::int64_t y = 0; y < size.height; y += strip) kernel(out.rows(y, y + strip), in.whole());
    benchmark::DoNotOptimize(out.bytes.data());
    benchmark::ClobberMemory();
  }
  const std::int64_t pixels = size.width * size.height;
  state.SetItemsProcessed(state.iterations() * pixels);
  state.SetBytesProcessed(state.iterations() * pixels *
                          static_cast<std::int64_t>(in.format.pixel_bytes() + format.pixel_bytes()));
}

void sobel(benchmark::State& state, PixelFormat format) { in_strips(state, luminance(), format, operators::sobel); }

void gaussian(benchmark::State& state, PixelFormat format) {
  const int radius = static_cast<int>(state.range(0));
  operators::Gaussian kernel(radius, 0.45 * radius);
  in_strips(state, format == rgb_format ? rgb() : luminance(), format,
            [&](const HostView& out, const ConstHostView& in) { kernel.run(out, in); });
}

void stain(benchmark::State& state) {
  const operators::StainBasis slide = {{{{0.62, 0.70, 0.35}, {0.28, 0.85, 0.45}}}, {1.4, 0.9}};
  const operators::Stain kernel(operators::stain_map(slide, operators::published_stains(), StainOutput::normalised));
  in_strips(state, rgb(), rgb_format, [&](const HostView& out, const ConstHostView& in) { kernel.run(out, in); });
}

void fit(benchmark::State& state) {
  const Mask tissue = operators::find_tissue(rgb().whole(), {32.0, 32.0}, {131072, 32768}, 0.25);
  std::vector<std::uint8_t> pixels;
  for (std::int64_t y = 0; y < size.height; ++y) {
    const auto* from = rgb().rows(y, y + 1).row<const std::uint8_t>(y);
    for (std::int64_t x = 0; x < size.width; ++x) {
      if (tissue.row(y)[static_cast<std::size_t>(x)] != 0) pixels.insert(pixels.end(), from + 3 * x, from + 3 * x + 3);
    }
  }
  for (auto _ : state) benchmark::DoNotOptimize(operators::fit_stains(pixels, operators::usual_white));
  state.SetItemsProcessed(state.iterations() * size.width * size.height);
}

void saturation(benchmark::State& state) { in_strips(state, rgb(), luminance_format, operators::saturation); }
void median(benchmark::State& state) { in_strips(state, luminance(), luminance_format, operators::median3x3); }

void tissue(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(operators::find_tissue(rgb().whole(), {32.0, 32.0}, {131072, 32768}, 0.25));
  }
  state.SetItemsProcessed(state.iterations() * size.width * size.height);
}

void outlines(benchmark::State& state) {
  const Mask mask = operators::find_tissue(rgb().whole(), {32.0, 32.0}, {131072, 32768}, 0.25);
  for (auto _ : state) benchmark::DoNotOptimize(operators::geojson_of(mask));
  state.SetItemsProcessed(state.iterations() * size.width * size.height);
}

BENCHMARK_CAPTURE(sobel, uint8, luminance_format)->Name("sobel/uint8");
BENCHMARK_CAPTURE(sobel, float32, float_format)->Name("sobel/float32");
BENCHMARK_CAPTURE(gaussian, luminance, luminance_format)->Name("gaussian/luminance")->Arg(1)->Arg(3)->Arg(8);
BENCHMARK_CAPTURE(gaussian, rgb, rgb_format)->Name("gaussian/rgb")->Arg(3);
BENCHMARK(stain)->Name("stain/apply");
BENCHMARK(fit)->Name("stain/fit")->Unit(benchmark::kMillisecond);
BENCHMARK(saturation)->Name("tissue/saturation");
BENCHMARK(median)->Name("tissue/median");
BENCHMARK(tissue)->Name("tissue/find")->Unit(benchmark::kMillisecond);
BENCHMARK(outlines)->Name("tissue/geojson")->Unit(benchmark::kMillisecond);

}  // namespace
