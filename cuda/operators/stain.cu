#include "cuda/operators/stain.cuh"

#include "cuda/operators/kernels.hpp"
#include "image/views.hpp"
#include "operators/stain/stain_operator.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/shared_memory.hpp"

namespace slidestream::cuda {
namespace {

class StainKernel final : public DeviceImageKernel {
 public:
  StainKernel() {
    int device = 0;
    SLIDESTREAM_CUDA(cudaGetDevice(&device));
    SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device));
    SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&shared_bytes_, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  }

  std::size_t scratch_bytes(const Size&) const override { return 0; }
  void enqueue(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
               std::span<std::byte>, const SlideParameters* parameters, cudaStream_t stream) override {
    require_input(out, in, {}, rgb_format);
    const auto& stains = static_cast<const operators::StainParameters&>(*parameters);
    const StainTask task = make_stain_task(make_image_task(out, in), stains.stain().map());
    const std::int64_t blocks = std::min<std::int64_t>(blocks_for(task.pieces, StainShape::threads),
                                                       StainShape::blocks_per_multiprocessor * multiprocessors_);
    const bool has_room = StainLayout<32>::bytes <= static_cast<std::size_t>(shared_bytes_);
    has_room ? launch<32>(task, blocks, stream) : launch<16>(task, blocks, stream);
  }

 private:
  template <int Copies>
  static void launch(const StainTask& task, std::int64_t blocks, cudaStream_t stream) {
    constexpr std::size_t shared = StainLayout<Copies>::bytes;
    runtime::cuda::allow_shared_memory(stain_pixels<Copies>, shared);
    stain_pixels<Copies><<<static_cast<unsigned>(blocks), StainShape::threads, shared, stream>>>(task);
    SLIDESTREAM_CUDA_LAUNCHED();
  }

  int multiprocessors_ = 0;
  int shared_bytes_ = 0;
};

}  // namespace

std::unique_ptr<DeviceImageKernel> make_stain_kernel(const Config&) { return std::make_unique<StainKernel>(); }

}  // namespace slidestream::cuda
