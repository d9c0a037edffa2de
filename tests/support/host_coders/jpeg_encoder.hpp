#pragma once

#include <cstddef>
#include <memory>
#include <slidestream/image.hpp>
#include <span>
#include <vector>

#include "cuda/encode/encode_batch.hpp"
#include "cuda/encode/encode_tables.hpp"

/// \file
/// What the device's threads do, one after the other on the host, with the same tables, steps and arithmetic. For tests
/// where there is no GPU; libjpeg-turbo is several times faster.

namespace slidestream::cuda {

class HostJpegEncoder {
 public:
  /// \throws as JpegEncoder.
  HostJpegEncoder(const JpegEncoderLimits& limits, int quality);
  /// \param tables  for the limits' format and side. \throws as JpegEncoder.
  HostJpegEncoder(const JpegEncoderLimits& limits, EncodeTables tables);
  ~HostJpegEncoder();
  HostJpegEncoder(const HostJpegEncoder&) = delete;
  HostJpegEncoder& operator=(const HostJpegEncoder&) = delete;

  /// What TIFF calls JPEGTables.
  std::span<const std::byte> tables() const noexcept;

  /// A tile. \throws as JpegEncoder::enqueue.
  std::vector<std::byte> encode(const ConstPixelView<MemorySpace::host>& plane, JpegTilePosition tile);

 private:
  struct Work;
  JpegEncoderLimits limits_;
  EncodeTables tables_;
  std::unique_ptr<Work> work_;
};

}  // namespace slidestream::cuda
