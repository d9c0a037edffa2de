#include "cuda/operators/stain.cuh"

#include "cuda/operators/kernels.hpp"
#include "image/views.hpp"
#include "operators/stain/stain_operator.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

class StainKernel final : public DeviceImageKernel {
 public:
  StainKernel() {
    int device = 0;
    SLIDESTREAM_CUDA(cudaGetDevice(&device));
    SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device));
  }

  std::size_t scratch_bytes(const Size&) const override { return 0; }
  void enqueue(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
               std::span<std::byte>, const SlideParameters* parameters, cudaStream_t stream) override {
    require_input(out, in, {}, rgb_format);
    const auto& stains = static_cast<const operators::StainParameters&>(*parameters);
    const StainTask task = make_stain_task(make_image_task(out, in), stains.stain().matrix());
    const std::int64_t blocks = std::min<std::int64_t>(blocks_for(task.pieces, StainShape::threads),
                                                       StainShape::blocks_per_multiprocessor * multiprocessors_);
    stain_pixels<<<static_cast<unsigned>(blocks), StainShape::threads, stain_shared_bytes(task), stream>>>(task);
    SLIDESTREAM_CUDA_LAUNCHED();
  }

 private:
  int multiprocessors_ = 0;
};

}  // namespace

std::unique_ptr<DeviceImageKernel> make_stain_kernel(const Config&) { return std::make_unique<StainKernel>(); }

}  // namespace slidestream::cuda
