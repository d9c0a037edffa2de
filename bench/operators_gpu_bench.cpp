// Milliseconds a slide for each image operator's kernel on the current GPU:
//   operators_gpu_bench [--json FILE] [--width N] [--height N] [--repeats N] [--only NAME]
// From pixels in device memory to pixels there, all of a slide a launch. Figures are medians; the rate is of the bytes
// that are read and written at least.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cuda/operators/image_kernel.hpp"
#include "gpu_steps.hpp"
#include "operators/registry.hpp"
#include "operators/stain/stain_operator.hpp"
#include "runtime/cuda/check.hpp"

namespace {

using namespace slidestream;
using namespace slidestream::bench;
using runtime::cuda::DeviceMemory;

std::int64_t pitch_of(std::int64_t width, const PixelFormat& format) {
  return (width * static_cast<std::int64_t>(format.pixel_bytes()) + 63) / 64 * 64;
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        in_(static_cast<std::size_t>(pitch_of(options.width, rgb_format) * options.height)),
        out_(static_cast<std::size_t>(pitch_of(options.width, {SampleType::float32, 1}) * options.height)) {
    fill_with_tissue(in_.bytes().data(), pitch_of(options.width, rgb_format), 3 * options.width, options.height);
  }

  Figure run(const std::string& name, const Config& config) {
    const auto op = operators::make_operators(config).at(0);
    const auto kernel = cuda::make_device_image_kernel(op->name(), config);
    const PixelFormat to = op->products().at(0).format;
    const Rect rect = {0, 0, options_.width, options_.height};
    const Size size = {options_.width, options_.height};
    const DeviceMemory scratch(std::max<std::size_t>(kernel->scratch_bytes(size), 256));
    const PixelView<MemorySpace::device> out = {out_.bytes().data(), pitch_of(size.width, to), rect, size, to};
    const ConstPixelView<MemorySpace::device> in = {in_.bytes().data(), pitch_of(size.width, op->input()), rect, size,
                                                    op->input()};
    const operators::StainBasis stains = {{{{0.62, 0.70, 0.35}, {0.28, 0.85, 0.45}}}, {1.4, 0.9}};
    const operators::StainParameters parameters(
        operators::stain_map(stains, operators::published_stains(), config.stain.output), stains);
    Figure figure = measure(name, options_.repeats, stream_.get(),
                            [&] { kernel->enqueue(out, in, scratch.bytes(), &parameters, stream_.get()); });
    const auto bytes = static_cast<double>(size.width * size.height) *
                       static_cast<double>(to.pixel_bytes() + op->input().pixel_bytes());
    char rate[32];
    std::snprintf(rate, sizeof(rate), ", %.0f GB/s", bytes / figure.median * 1e-6);
    figure.note = rate;
    return figure;
  }

 private:
  Options options_;
  DeviceMemory in_;
  DeviceMemory out_;
  runtime::cuda::Stream stream_;
};

Figures run(const Options& options) {
  Bench bench(options);
  Figures figures(options);
  const auto add = [&](const std::string& name, const Config& config, std::optional<double> target) {
    if (figures.wanted(name)) figures.add(bench.run(name, config), target);
  };
  Config config;
  config.operators.run = {"identity"};
  add("identity_ms", config, 4.5);
  config.operators.run = {"sobel"};
  add("sobel_ms", config, 3.0);
  config.sobel.output = SobelOutput::float32;
  add("sobel_float32_ms", config, 6.0);
  config.operators.run = {"stain"};
  add("stain_ms", config, 6.0);
  config.operators.run = {"gaussian"};
  add("gaussian_ms", config, std::nullopt);
  config.gaussian.colour = PixelColour::luminance;
  add("gaussian_luminance_ms", config, std::nullopt);
  config.gaussian = {16, 5.0, PixelColour::rgb};
  add("gaussian_16_ms", config, std::nullopt);
  return figures;
}

}  // namespace

int main(int argc, char** argv) { return bench::measure_steps(argc, argv, run); }
