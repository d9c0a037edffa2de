// The kernel that makes planes of tiles, thread by thread on the host: for machines without a GPU.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#pragma GCC diagnostic push
#include "cuda/emulator/device_words.hpp"
// The kernels come behind what stands in for the device.
#include "cuda/networks/planes.cuh"
#pragma GCC diagnostic pop
#include "networks/normalisation.hpp"

using namespace slidestream;
using namespace slidestream::cuda;

TEST_CASE("planes of tiles have the bits of the host's, whatever the size of a tile") {
  ModelConfig model;
  model.mean = {0.485, 0.456, 0.406};
  model.deviation = {0.229, 0.224, 0.225};
  const networks::Normalisation normalisation(model);
  std::mt19937 random(9);
  for (const std::uint32_t area : {1U, 2U, 49U, 1024U, 1500U}) {
    for (const std::uint32_t tiles : {1U, 3U}) {
      std::vector<std::uint8_t> pixels(std::size_t{area} * tiles * 3);
      for (std::uint8_t& sample : pixels) sample = static_cast<std::uint8_t>(random() >> 24);
      std::vector<float> expected(pixels.size());
      normalisation.run(pixels, area, expected);
      std::vector<float> found(pixels.size(), -7.0F);
      const PlanesTask<float> task = {pixels.data(),
                                      found.data(),
                                      normalisation.table().data(),
                                      area,
                                      (area + PlanesShape::pixels - 1) / PlanesShape::pixels,
                                      tiles};
      const unsigned blocks = planes_blocks(task);
      for (unsigned block = 0; block < blocks; ++block) {
        test::emulator::run_block(block, blocks, PlanesShape::threads, [&] { make_planes<float>(task); });
      }
      CHECK(found == expected);
    }
  }
}
