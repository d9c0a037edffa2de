#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "cuda/networks/planes.hpp"
#include "networks/tile_planes.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"

namespace slidestream::networks {
namespace {

namespace rt = runtime::cuda;

template <class Sample>
class DevicePlanes final : public TilePlanes {
 public:
  DevicePlanes(std::span<const Sample> table, const PlanesSize& size, int gpu)
      : gpu_(gpu),
        size_(size),
        samples_(size.area * size.tiles * 3),
        staged_(std::max(samples_, table.size_bytes())),
        pinned_(staged_.bytes()),
        pixels_(samples_),
        planes_(samples_ * sizeof(Sample)),
        table_(table.size_bytes()) {
    std::memcpy(staged_.bytes().data(), table.data(), table.size_bytes());
    SLIDESTREAM_CUDA(cudaMemcpyAsync(table_.bytes().data(), staged_.bytes().data(), table.size_bytes(),
                                     cudaMemcpyHostToDevice, stream_.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
  }

  void* data() const noexcept override { return planes_.bytes().data(); }
  std::size_t bytes() const noexcept override { return planes_.bytes().size(); }

  void put(std::span<const std::uint8_t> pixels) override {
    const rt::DeviceScope scope(gpu_);
    // In parts, so that the first ones are on their way while the next ones are copied.
    constexpr std::size_t part = std::size_t{4} << 20;
    for (std::size_t at = 0; at < pixels.size(); at += part) {
      const std::size_t bytes = std::min(part, pixels.size() - at);
      std::memcpy(staged_.bytes().data() + at, pixels.data() + at, bytes);
      SLIDESTREAM_CUDA(cudaMemcpyAsync(pixels_.bytes().data() + at, staged_.bytes().data() + at, bytes,
                                       cudaMemcpyHostToDevice, stream_.get()));
    }
    cuda::enqueue_planes(reinterpret_cast<Sample*>(planes_.bytes().data()),
                         reinterpret_cast<const std::uint8_t*>(pixels_.bytes().data()),
                         reinterpret_cast<const Sample*>(table_.bytes().data()), size_.area, size_.tiles,
                         stream_.get());
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
  }

 private:
  int gpu_;
  PlanesSize size_;
  std::size_t samples_;
  runtime::HostMemory staged_;
  rt::PinnedRange pinned_;
  rt::DeviceMemory pixels_;
  rt::DeviceMemory planes_;
  rt::DeviceMemory table_;
  rt::Stream stream_;
};

}  // namespace

std::unique_ptr<TilePlanes> make_device_planes(const Normalisation& normalisation, const PlanesSize& size, int gpu) {
  const rt::DeviceScope scope(gpu);
  if (size.half) return std::make_unique<DevicePlanes<std::uint16_t>>(normalisation.half_table(), size, gpu);
  return std::make_unique<DevicePlanes<float>>(normalisation.table(), size, gpu);
}

}  // namespace slidestream::networks
