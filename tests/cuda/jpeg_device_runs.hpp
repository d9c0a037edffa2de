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

/// A tile to decode, the part of it that is wanted, and how its part of the plane lies.
struct DeviceTile {
  const Bytes* bytes = nullptr;
  cuda::JpegColour colour = cuda::JpegColour::luminance;
  int from_x = 0;
  int from_y = 0;
  int width = 0;
  int height = 0;
  bool inverted = false;
  int misalignment = 0;  ///< bytes; 0: as slides' tiles lie, in rows of a multiple of 64 bytes
};

struct DeviceResult {
  cuda::JpegReason reason;  ///< the parser's, or the device's verdict
  std::vector<std::uint8_t> pixels;
};

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
