// The kernels of image operators on a GPU, against the host's.
#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "cuda/device_copies.hpp"
#include "cuda/image_kernel_cases.hpp"
#include "cuda/operators/image_kernel.hpp"
#include "operators/registry.hpp"
#include "operators/sobel/sobel.hpp"
#include "operators/stain/stain_operator.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "support/gpu.hpp"
#include "support/gradient_cells.hpp"

using namespace slidestream;
using namespace slidestream::test;
using runtime::cuda::DeviceMemory;

namespace {

/// An operator on the device and on the host.
class Both {
 public:
  Both(const Config& config, const SlideParameters* parameters)
      : operator_(operators::make_operators(config).at(0)),
        device_(cuda::make_device_image_kernel(operator_->name(), config)),
        host_(operator_->host_kernel()),
        parameters_(parameters) {
    REQUIRE(device_ != nullptr);
  }

  PixelFormat input() const { return operator_->input(); }
  PixelFormat output() const { return operator_->products().at(0).format; }
  Border halo() const { return operator_->footprint().halo; }

  void run_on_device(PlacedImage& out, const PlacedImage& in) {
    const DeviceMemory to = to_device(out.bytes);
    const DeviceMemory from = to_device(in.bytes);
    const DeviceMemory scratch(std::max<std::size_t>(device_->scratch_bytes({out.rect.width, out.rect.height}), 256));
    const runtime::cuda::Stream stream;
    device_->enqueue(out.view<MemorySpace::device>(to.bytes().data()),
                     in.view<MemorySpace::device>(from.bytes().data()), scratch.bytes(), parameters_, stream.get());
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
    SLIDESTREAM_CUDA(cudaMemcpy(out.bytes.data(), to.bytes().data(), out.bytes.size(), cudaMemcpyDeviceToHost));
  }

  void run_on_host(const HostView& out, const ConstHostView& in) {
    OutputViews to;
    to.image = out;
    host_->run(in, {out.rect.x, out.rect.width, out.rect.y, out.rect.height}, to, parameters_);
  }

 private:
  std::shared_ptr<const Operator> operator_;
  std::unique_ptr<cuda::DeviceImageKernel> device_;
  std::unique_ptr<HostKernel> host_;
  const SlideParameters* parameters_;
};

/// `cases` images of at most this size.
void check(const Config& config, int cases, Size most, const SlideParameters* parameters = nullptr) {
  CAPTURE(config.operators.run.at(0));
  Both both(config, parameters);
  check_image_kernel(
      cases, most, both.input(), both.output(), both.halo(),
      [&](PlacedImage& out, const PlacedImage& in) { both.run_on_device(out, in); },
      [&](const HostView& out, const ConstHostView& in) { both.run_on_host(out, in); });
}

Config running(const char* name) {
  Config config;
  config.operators.run = {name};
  return config;
}

/// Every operator with every kind of output.
void check_all(int cases, Size most) {
  Config config = running("identity");
  for (const PixelColour colour : {PixelColour::rgb, PixelColour::luminance}) {
    config.identity.colour = colour;
    check(config, cases, most);
  }
  config = running("sobel");
  for (const SobelOutput output : {SobelOutput::uint8, SobelOutput::float32}) {
    config.sobel.output = output;
    check(config, cases, most);
  }
  config = running("gaussian");
  for (const int radius : {0, 1, 3, 4, 6, 11, 16}) {
    for (const PixelColour colour : {PixelColour::rgb, PixelColour::luminance}) {
      config.gaussian = {radius, radius % 2 == 0 ? 1000.0 : 0.4 * radius, colour};
      check(config, cases, most);
    }
  }
  config.gaussian = {16, 0.1, PixelColour::rgb};  // neighbours weigh nothing
  check(config, 4, most);
  config = running("stain");
  const operators::StainBasis stains = {{{{0.62, 0.70, 0.35}, {0.28, 0.85, 0.45}}}, {1.4, 0.9}, {242, 255, 231}};
  for (const StainOutput output : {StainOutput::normalised, StainOutput::hematoxylin, StainOutput::eosin}) {
    const operators::StainParameters parameters(operators::stain_map(stains, operators::published_stains(), output),
                                                stains);
    check(config, cases, most, &parameters);
  }
}

}  // namespace

TEST_CASE("image operators' kernels give the host's pixels on a GPU, at any size, place and address") {
  if (gpus_or_skip() == 0) return;
  check_all(14, {700, 90});
}

TEST_CASE("image operators' kernels give the host's pixels on a GPU (large)") {
  if (gpus_or_skip() == 0) return;
  check_all(6, {5000, 1300});
}

TEST_CASE("Sobel's kernel on a GPU gives what the definition says for every pair of gradients (large)") {
  if (gpus_or_skip() == 0) return;
  const GradientCells made;
  std::vector<PixelImage> results;
  for (const SobelOutput output : {SobelOutput::uint8, SobelOutput::float32}) {
    Config config = running("sobel");
    config.sobel.output = output;
    Both both(config, nullptr);
    // Rows at whole vectors, so that the fast way makes them.
    PlacedImage in(made.image.rect, made.image.image, luminance_format, 0, to_whole_vectors(made.image.pitch));
    in.fill(made.image);
    const std::size_t row = made.image.pitch * both.output().pixel_bytes();
    PlacedImage out(made.image.rect, made.image.image, both.output(), 0, to_whole_vectors(row));
    both.run_on_device(out, in);
    results.emplace_back(made.image.image, both.output());
    for (std::size_t y = 0; y < 3; ++y) {
      std::memcpy(results.back().bytes.data() + y * row, out.bytes.data() + y * out.pitch, row);
    }
  }
  CHECK(made.wrong(results[0], results[1]) == 0);
}

TEST_CASE("there is a kernel for every operator that says so, and none for others") {
  if (gpus_or_skip() == 0) return;
  CHECK(cuda::make_device_image_kernel("spectrum", {}) == nullptr);
  CHECK(cuda::make_device_image_kernel("tissue", {}) == nullptr);
  for (const char* name : {"identity", "sobel", "gaussian", "stain"}) {
    CHECK(cuda::make_device_image_kernel(name, {}) != nullptr);
  }
}
