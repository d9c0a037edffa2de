#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cuda/networks/planes.hpp"
#include "networks/network_gpus.hpp"
#include "networks/tile_planes.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"

namespace slidestream::networks {
namespace {

namespace rt = runtime::cuda;

/// Host memory, and its being pinned.
struct Pinned {
  explicit Pinned(std::size_t bytes) : memory(bytes), range(memory.bytes()) {}

  runtime::HostMemory memory;
  rt::PinnedRange range;
};

template <class Sample>
class DevicePlanes final : public TilePlanes {
 public:
  DevicePlanes(std::span<const Sample> table, const PlanesSize& size, int gpu)
      : gpu_(gpu),
        size_(size),
        pixels_(size.area * size.tiles * 3),
        planes_(size.area * size.tiles * 3 * sizeof(Sample)),
        given_(size.values * size.value_bytes()),
        widened_(size.half_values ? size.values * sizeof(float) : 0),
        table_(table.size_bytes()) {
    // Numbers that aren't, in float32 and float16: what a network leaves out is seen.
    SLIDESTREAM_CUDA(cudaMemsetAsync(given_.bytes().data(), 0xff, given_.bytes().size(), stream_.get()));
    const Pinned staged(table.size_bytes());
    std::memcpy(staged.memory.bytes().data(), table.data(), table.size_bytes());
    SLIDESTREAM_CUDA(cudaMemcpyAsync(table_.bytes().data(), staged.memory.bytes().data(), table.size_bytes(),
                                     cudaMemcpyHostToDevice, stream_.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
  }

  void* data() const noexcept override { return planes_.bytes().data(); }
  std::size_t bytes() const noexcept override { return planes_.bytes().size(); }
  void* given() const noexcept override { return given_.bytes().data(); }
  std::size_t given_bytes() const noexcept override { return given_.bytes().size(); }

  void put(std::span<const std::uint8_t> pixels) override {
    const rt::DeviceScope scope(gpu_);
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(pixels_.bytes().data(), pixels.data(), pixels.size(), cudaMemcpyHostToDevice, stream_.get()));
    cuda::enqueue_planes(reinterpret_cast<Sample*>(planes_.bytes().data()),
                         reinterpret_cast<const std::uint8_t*>(pixels_.bytes().data()),
                         reinterpret_cast<const Sample*>(table_.bytes().data()), size_.area, size_.tiles,
                         stream_.get());
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
  }

  void take(std::span<float> values) override {
    const rt::DeviceScope scope(gpu_);
    if (size_.whole_values != onnx::ElementType::undefined) {
      std::vector<std::byte> wholes(given_.bytes().size());
      SLIDESTREAM_CUDA(
          cudaMemcpyAsync(wholes.data(), given_.bytes().data(), wholes.size(), cudaMemcpyDeviceToHost, stream_.get()));
      SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
      return widen_whole(wholes, size_.whole_values, values);
    }
    const std::byte* from = given_.bytes().data();
    if (size_.half_values) {
      from = widened_.bytes().data();
      cuda::enqueue_widened(reinterpret_cast<float*>(widened_.bytes().data()),
                            reinterpret_cast<const std::uint16_t*>(given_.bytes().data()), size_.values, stream_.get());
    }
    SLIDESTREAM_CUDA(cudaMemcpyAsync(values.data(), from, values.size_bytes(), cudaMemcpyDeviceToHost, stream_.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream_.get()));
  }

 private:
  int gpu_;
  PlanesSize size_;
  rt::DeviceMemory pixels_;
  rt::DeviceMemory planes_;
  rt::DeviceMemory given_;    ///< of the network's own type
  rt::DeviceMemory widened_;  ///< the same as float32, where that is another
  rt::DeviceMemory table_;
  rt::Stream stream_;
};

}  // namespace

std::unique_ptr<TilePlanes> make_device_planes(const Normalisation& normalisation, const PlanesSize& size, int gpu) {
  const rt::DeviceScope scope(gpu);
  if (size.half) return std::make_unique<DevicePlanes<std::uint16_t>>(normalisation.half_table(), size, gpu);
  return std::make_unique<DevicePlanes<float>>(normalisation.table(), size, gpu);
}

std::shared_ptr<std::byte[]> pinned_memory(std::size_t bytes, int gpu) {
  const rt::DeviceScope scope(gpu);
  const auto pinned = std::make_shared<const Pinned>(bytes);
  return {pinned, pinned->memory.bytes().data()};
}

NetworkGpus find_gpus() {
  const rt::Devices devices = rt::find_devices();
  NetworkGpus gpus{{}, devices.why_none};
  for (const rt::Device& device : devices.found) gpus.found.push_back({device.ordinal, device.memory});
  return gpus;
}

std::uint64_t free_memory(int gpu) {
  const rt::DeviceScope scope(gpu);
  std::size_t free = 0;
  std::size_t total = 0;
  SLIDESTREAM_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

}  // namespace slidestream::networks
