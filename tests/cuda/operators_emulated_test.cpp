// The kernels of image operators, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "cuda/image_kernel_cases.hpp"
#include "support/plain_operators.hpp"

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/operators/copy.cuh"
#include "cuda/operators/gaussian.cuh"
#include "cuda/operators/sobel.cuh"
#include "cuda/operators/stain.cuh"
#pragma GCC diagnostic pop
#include "operators/sobel/sobel.hpp"

using namespace slidestream;
using namespace slidestream::cuda;
using namespace slidestream::test;

namespace {

/// A case in aligned memory, as the device's is.
struct Emulated {
  explicit Emulated(const PlacedImage& placed)
      : memory(new (std::align_val_t{PlacedImage::alignment}) std::byte[placed.bytes.size()]) {
    std::memcpy(memory.get(), placed.bytes.data(), placed.bytes.size());
  }
  struct Free {
    void operator()(std::byte* at) const { ::operator delete[](at, std::align_val_t{PlacedImage::alignment}); }
  };
  std::unique_ptr<std::byte[], Free> memory;
};

/// Runs the blocks of a kernel: `blocks(task)` of them, `threads` each.
template <class MakeTask, class Blocks, class Kernel>
auto emulate(unsigned threads, const MakeTask& make_task, const Blocks& blocks, const Kernel& kernel) {
  return [=](PlacedImage& out, const PlacedImage& in) {
    const Emulated to(out);
    const Emulated from(in);
    const auto task = make_task(make_image_task(out.view<MemorySpace::device>(to.memory.get()),
                                                in.view<MemorySpace::device>(from.memory.get())));
    const unsigned count = blocks(task);
    for (unsigned block = 0; block < count; ++block) {
      test::emulator::run_block(block, count, threads, [&] { kernel(task); });
    }
    std::memcpy(out.bytes.data(), to.memory.get(), out.bytes.size());
  };
}

template <class T>
void check_sobel(PixelFormat to) {
  const auto run = emulate(
      SobelShape::threads, [](const ImageTask& task) { return task; },
      [](const ImageTask& task) { return sobel_blocks<T>(task); },
      [](const ImageTask& task) { sobel_pixels<T>(task, sobel_blocks_across<T>(task)); });
  check_image_kernel(60, {2300, 45}, luminance_format, to, operators::sobel_border, run, operators::sobel);
}

template <int channels, int reach>
void check_gaussian(int radius, double sigma) {
  CAPTURE(radius);
  CAPTURE(sigma);
  using Shape = GaussianShape<channels, reach>;
  REQUIRE(radius <= Shape::reach);
  const auto run = emulate(
      Shape::threads,
      [&](const ImageTask& task) {
        return make_gaussian_task<Shape>(task, operators::gaussian_weights(radius, sigma));
      },
      [](const GaussianTask& task) { return gaussian_blocks<Shape>(task); },
      [](const GaussianTask& task) { gaussian_pixels<channels, reach>(task); });
  operators::Gaussian gaussian(radius, sigma);
  const PixelFormat format = channels == 1 ? luminance_format : rgb_format;
  check_image_kernel(16, {2 * Shape::columns + 9, Shape::rows + 5}, format, format, border_of(radius), run,
                     [&](const HostView& out, const ConstHostView& in) { gaussian.run(out, in); });
}

}  // namespace

TEST_CASE("emulated: rows are copied in whole vectors") {
  for (const PixelFormat& format : {luminance_format, rgb_format}) {
    const auto emulated = emulate(
        CopyShape::threads, [&](const ImageTask& task) { return make_copy_task(task, format.pixel_bytes()); },
        copy_blocks, [](const CopyTask& task) { copy_rows(task); });
    int copied = 0;
    const auto run = [&](PlacedImage& out, const PlacedImage& in) {
      // Others are the runtime's.
      const auto left = static_cast<std::size_t>(out.rect.x - in.rect.x) * format.pixel_bytes();
      if ((out.offset | (in.offset + left) | out.pitch | in.pitch) % 16 == 0) {
        emulated(out, in);
        ++copied;
      } else {
        PlacedImage source = in;
        copy_pixels(out.view<MemorySpace::host>(out.bytes.data()), source.view<MemorySpace::host>(source.bytes.data()));
      }
    };
    check_image_kernel(40, {900, 70}, format, format, {}, run,
                       [](const HostView& out, const ConstHostView& in) { copy_pixels(out, in); });
    CHECK(copied > 10);
  }
}

TEST_CASE("emulated: Sobel's kernel in 8 bits gives the host's pixels") {
  check_sobel<std::uint8_t>({SampleType::uint8, 1});
}

TEST_CASE("emulated: Sobel's kernel in float32 gives the host's pixels") {
  check_sobel<float>({SampleType::float32, 1});
}

TEST_CASE("a root that is as wrong as the device's may be is rounded as the definition counts") {
  int wrong = 0;
  for (int x = 0; x <= 1020; ++x) {
    for (int y = 0; y <= x; ++y) {
      const auto made = rounded_steepness(static_cast<float>(x), static_cast<float>(y)) & 255U;
      wrong += made != plain_sobel_count(x * x + y * y);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("emulated: the Gaussian's kernel gives the host's pixels") {
  check_gaussian<1, 2>(1, 0.5);
  check_gaussian<3, 2>(2, 1.0);
  // Sums that lie in the middle between two whole numbers: weights are a quarter, a half, a quarter.
  const double halves = 1.0 / std::sqrt(2.0 * std::log(2.0));
  REQUIRE(operators::gaussian_weights(1, halves)[1] == 16384);
  check_gaussian<1, 2>(1, halves);
  check_gaussian<3, 2>(1, halves);
  check_gaussian<1, 3>(3, 1.4);
  check_gaussian<3, 3>(3, 1.4);
  check_gaussian<1, 4>(4, 30.0);
  check_gaussian<3, 4>(4, 0.7);
  check_gaussian<1, 8>(7, 2.0);
  check_gaussian<3, 8>(5, 1000.0);
  check_gaussian<1, 12>(9, 3.0);
  check_gaussian<3, 12>(12, 4.0);
  check_gaussian<1, 16>(16, 1000.0);
  check_gaussian<3, 16>(14, 5.0);
}

template <int Copies>
void check_stains(const operators::StainMap& map) {
  const auto run = emulate(
      StainShape::threads, [&](const ImageTask& task) { return make_stain_task(task, map); },
      [](const StainTask&) { return 2U; }, [](const StainTask& task) { stain_pixels<Copies>(task); });
  const operators::Stain stain(map);
  check_image_kernel(6, {240, 90}, rgb_format, rgb_format, {}, run,
                     [&](const HostView& out, const ConstHostView& in) { stain.run(out, in); });
}

TEST_CASE("emulated: the stains' kernel gives the host's pixels") {
  const operators::StainBasis stains = {{{{0.62, 0.70, 0.35}, {0.28, 0.85, 0.45}}}, {1.4, 0.9}, {242, 255, 231}};
  for (const StainOutput output : {StainOutput::normalised, StainOutput::hematoxylin, StainOutput::eosin}) {
    const operators::StainMap map = operators::stain_map(stains, operators::published_stains(), output);
    check_stains<32>(map);
    check_stains<16>(map);
  }
  check_stains<32>(operators::stain_map(operators::published_stains(), stains, StainOutput::normalised));
}
