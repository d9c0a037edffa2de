#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/jpeg/jpeg_batch_decoder.hpp"
#include "cuda/jpeg_tiles.hpp"

/// \file
/// Runs of the GPU's JPEG decoder for tests: tiles in, pixels and verdicts out.

namespace slidestream::test {

bool gpu_is_there();

/// Everything that a decoder needs, for batches up to some limits.
class DeviceRuns {
 public:
  explicit DeviceRuns(const cuda::JpegBatchLimits& limits);
  ~DeviceRuns();
  /// One batch. Checks that nothing outside the tiles' rectangles was written. `lanes`: what work is cut for; 0: never
  /// into pieces, -1: as the decoder says.
  std::vector<DeviceResult> run(const std::vector<DeviceTile>& tiles, const Bytes& tables = {},
                                std::int64_t lanes = -1);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slidestream::test
