#include "cuda/operators/sobel.cuh"

#include "cuda/operators/kernels.hpp"
#include "image/views.hpp"
#include "operators/sobel/sobel.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

class SobelKernel final : public DeviceImageKernel {
 public:
  std::size_t scratch_bytes(const Size&) const override { return 0; }
  void enqueue(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
               std::span<std::byte>, const SlideParameters*, cudaStream_t stream) override {
    require_input(out, in, operators::sobel_border, luminance_format);
    const ImageTask task = make_image_task(out, in);
    if (out.format.sample == SampleType::float32) {
      sobel_pixels<float>
          <<<sobel_blocks<float>(task), SobelShape::threads, 0, stream>>>(task, sobel_blocks_across<float>(task));
    } else {
      sobel_pixels<std::uint8_t><<<sobel_blocks<std::uint8_t>(task), SobelShape::threads, 0, stream>>>(
          task, sobel_blocks_across<std::uint8_t>(task));
    }
    SLIDESTREAM_CUDA_LAUNCHED();
  }
};

}  // namespace

std::unique_ptr<DeviceImageKernel> make_sobel_kernel(const Config&) { return std::make_unique<SobelKernel>(); }

}  // namespace slidestream::cuda
