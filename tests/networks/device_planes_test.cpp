// Tiles on a GPU that is made up: what a network finds there is what it finds on the host.

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "networks/tile_planes.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"

using namespace slidestream;
using namespace slidestream::networks;

TEST_CASE("A batch of tiles has the same bits on a GPU as on the host") {
  ModelConfig model;
  model.mean = {0.485, 0.456, 0.406};
  model.deviation = {0.229, 0.224, 0.225};
  const auto normalisation = std::make_shared<const Normalisation>(model);
  std::mt19937 random(7);
  for (const bool half : {false, true}) {
    // More bytes than are copied at a time, and few.
    for (const PlanesSize size : {PlanesSize{300 * 300, 3, half, 1000, half}, PlanesSize{49, 2, half, 3, !half}}) {
      const auto host = make_host_planes(normalisation, size);
      const auto device = make_device_planes(*normalisation, size, 1);
      REQUIRE(host->bytes() == size.area * size.tiles * 3 * (half ? 2 : 4));
      REQUIRE(device->bytes() == host->bytes());
      REQUIRE(host->given_bytes() == size.values * (size.half_values ? 2 : 4));
      REQUIRE(device->given_bytes() == host->given_bytes());
      const auto pixels_memory = pinned_memory(size.area * size.tiles * 3, 1);
      const auto values_memory = pinned_memory(size.values * sizeof(float), 1);
      const std::span pixels(reinterpret_cast<std::uint8_t*>(pixels_memory.get()), size.area * size.tiles * 3);
      const std::span values(reinterpret_cast<float*>(values_memory.get()), size.values);
      for (int round = 0; round < 2; ++round) {
        std::ranges::generate(pixels, [&] { return static_cast<std::uint8_t>(random() >> 24); });
        host->put(pixels);
        device->put(pixels);
        const runtime::HostMemory memory(device->bytes());
        const std::span<std::byte> found = memory.bytes();
        const runtime::cuda::PinnedRange pinned(found);
        const runtime::cuda::Stream stream;
        SLIDESTREAM_CUDA(
            cudaMemcpyAsync(found.data(), device->data(), found.size(), cudaMemcpyDeviceToHost, stream.get()));
        SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
        const auto* expected = static_cast<const std::byte*>(host->data());
        CHECK(std::equal(found.begin(), found.end(), expected));
        // What a network gives; none of its numbers is too large for float16.
        const runtime::HostMemory given(device->given_bytes());
        const runtime::cuda::PinnedRange pinned_too(given.bytes());
        std::ranges::generate(given.bytes(), [&] { return static_cast<std::byte>(random() >> 24 & 0x7BU); });
        std::ranges::copy(given.bytes().first(host->given_bytes()), static_cast<std::byte*>(host->given()));
        SLIDESTREAM_CUDA(cudaMemcpyAsync(device->given(), given.bytes().data(), device->given_bytes(),
                                         cudaMemcpyHostToDevice, stream.get()));
        SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
        std::vector<float> wanted(size.values);
        host->take(wanted);
        device->take(values);
        CHECK(std::ranges::equal(values, wanted));
      }
    }
  }
}
