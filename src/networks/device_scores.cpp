#include "networks/device_scores.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "cuda/networks/labels.hpp"
#include "networks/normalisation.hpp"
#include "networks/tile_planes.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"

namespace slidestream::networks {
namespace {

namespace rt = runtime::cuda;

static_assert(DeviceScores::no_label == cuda::no_label);

class CudaScores final : public DeviceScores {
 public:
  CudaScores(const ScoresSize& size, int gpu)
      : gpu_(gpu),
        size_(size),
        given_(size.device_bytes() - size.voxels * sizeof(std::uint16_t)),
        labels_(size.voxels * sizeof(std::uint16_t)),
        fetched_(pinned_memory(size.voxels * sizeof(std::uint16_t), gpu)) {
    // Numbers that aren't, in float32 and float16: what a network leaves out is seen.
    SLIDESTREAM_CUDA(cudaMemsetAsync(given(), 0xff, given_bytes(), stream_.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
  }

  void* given() const noexcept override { return given_.bytes().data(); }
  std::size_t given_bytes() const noexcept override { return given_.bytes().size(); }
  std::size_t given_values() const noexcept override { return size_.values(); }

  std::span<const std::uint16_t> labels() override {
    const rt::DeviceScope scope(gpu_);
    auto* const on_gpu = reinterpret_cast<std::uint16_t*>(labels_.bytes().data());
    if (size_.half) {
      cuda::enqueue_labels(on_gpu, static_cast<const std::uint16_t*>(given()), size_.channels, size_.voxels,
                           stream_.get());
    } else {
      cuda::enqueue_labels(on_gpu, static_cast<const float*>(given()), size_.channels, size_.voxels, stream_.get());
    }
    auto* const to = reinterpret_cast<std::uint16_t*>(fetched_.get());
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(to, on_gpu, size_.voxels * sizeof(std::uint16_t), cudaMemcpyDeviceToHost, stream_.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
    return {to, size_.voxels};
  }

  void take(std::span<float> values) override {
    const rt::DeviceScope scope(gpu_);
    const std::shared_ptr<std::byte[]> staged = pinned_memory(given_bytes(), gpu_);
    SLIDESTREAM_CUDA(cudaMemcpyAsync(staged.get(), given(), given_bytes(), cudaMemcpyDeviceToHost, stream_.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
    if (size_.half) {
      const std::span halves(reinterpret_cast<const std::uint16_t*>(staged.get()), size_.values());
      std::ranges::transform(halves, values.begin(), from_half);
    } else {
      std::memcpy(values.data(), staged.get(), values.size_bytes());
    }
  }

 private:
  int gpu_;
  ScoresSize size_;
  rt::DeviceMemory given_;
  rt::DeviceMemory labels_;
  std::shared_ptr<std::byte[]> fetched_;
  rt::Stream stream_;
};

}  // namespace

std::unique_ptr<DeviceScores> make_device_scores(const ScoresSize& size, int gpu) {
  const rt::DeviceScope scope(gpu);
  return std::make_unique<CudaScores>(size, gpu);
}

}  // namespace slidestream::networks
