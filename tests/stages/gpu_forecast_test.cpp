#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <slidestream/forecast.hpp>

#include "planning/device_sizing.hpp"
#include "runtime/cuda/check.hpp"
#include "support/gpu.hpp"

using namespace slidestream;

TEST_CASE("what is assumed of a GPU's memory is what the GPU says") {
  if (test::gpus_or_skip() == 0) return;
  Config config;
  const DeviceFacts there = facts_of_device(config, {}, 0);
  int multiprocessors = 0;
  SLIDESTREAM_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const DeviceFacts assumed = facts_of(config, {}, {"this one", there.free, multiprocessors});
  CHECK(there.engine.starts_with(assumed.engine));
  for (const std::int64_t columns : {1, 7, 300, 2000}) {
    for (const std::int64_t rows : {1, 40, 333}) {
      CAPTURE(columns);
      CAPTURE(rows);
      const std::int64_t width = (columns - 1) * 128 + 256;
      const std::int64_t height = (rows - 1) * 128 + 256;
      CHECK(there.sizing.windows(width, height, columns, rows) == assumed.sizing.windows(width, height, columns, rows));
    }
  }
  // All but what the library tells.
  config.analysis.window = 128;
  const DeviceFacts cufft = facts_of_device(config, {}, 0);
  const std::size_t told = facts_of(config, {}, {"this one", there.free, multiprocessors}).sizing.windows(0, 0, 40, 30);
  CHECK(cufft.sizing.windows(0, 0, 40, 30) >= told);
  for (const std::size_t slot : {std::size_t{1} << 20, std::size_t{1} << 28, std::size_t{1} << 31}) {
    CHECK(there.sizing.decoder({slot, 4096}) == assumed.sizing.decoder({slot, 4096}));
    TileLimits waves{slot, 4096};
    waves.wave = 2048;
    CHECK(there.sizing.decoder(waves) == assumed.sizing.decoder(waves));
    CHECK(there.sizing.decoder(waves) > std::size_t{2048} * 120000);
  }
}
