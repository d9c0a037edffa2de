#include "cuda/operators/gaussian.cuh"

#include "cuda/operators/kernels.hpp"
#include "image/views.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {
namespace {

template <int channels, int reach>
void launch(const ImageTask& image, const operators::GaussianWeights& weights, cudaStream_t stream) {
  using Shape = GaussianShape<channels, reach>;
  const auto task = make_gaussian_task<Shape>(image, weights);
  gaussian_pixels<channels, reach><<<gaussian_blocks<Shape>(task), Shape::threads, Shape::shared_bytes, stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

class GaussianKernel final : public DeviceImageKernel {
 public:
  explicit GaussianKernel(const GaussianConfig& config)
      : radius_(config.radius), weights_(operators::gaussian_weights(config.radius, config.sigma)) {
    // Pixels further away than this weigh nothing.
    while (reach_ > 0 && weights_[static_cast<std::size_t>(reach_)] == 0) --reach_;
  }

  std::size_t scratch_bytes(const Size&) const override { return 0; }
  void enqueue(const PixelView<MemorySpace::device>& out, const ConstPixelView<MemorySpace::device>& in,
               std::span<std::byte>, const SlideParameters*, cudaStream_t stream) override {
    require_input(out, in, border_of(radius_), out.format);
    if (reach_ == 0) return enqueue_copy(out, in, stream);
    const ImageTask task = make_image_task(out, in);
    if (out.format == luminance_format) {
      launch_for<1>(task, stream);
    } else {
      launch_for<3>(task, stream);
    }
  }

 private:
  template <int channels>
  void launch_for(const ImageTask& task, cudaStream_t stream) const {
    if (reach_ <= 2) return launch<channels, 2>(task, weights_, stream);
    if (reach_ == 3) return launch<channels, 3>(task, weights_, stream);
    if (reach_ == 4) return launch<channels, 4>(task, weights_, stream);
    if (reach_ <= 8) return launch<channels, 8>(task, weights_, stream);
    if (reach_ <= 12) return launch<channels, 12>(task, weights_, stream);
    launch<channels, 16>(task, weights_, stream);
  }

  int radius_;
  int reach_ = max_smoothing_radius;
  operators::GaussianWeights weights_;
};

}  // namespace

std::unique_ptr<DeviceImageKernel> make_gaussian_kernel(const Config& config) {
  return std::make_unique<GaussianKernel>(config.gaussian);
}

}  // namespace slidestream::cuda
