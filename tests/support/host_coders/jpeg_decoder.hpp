#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/colour/colour_program.hpp"
#include "cuda/jpeg/jpeg_batch.hpp"
#include "cuda/jpeg/jpeg_coding.hpp"
#include "cuda/jpeg/jpeg_geometry.hpp"
#include "cuda/jpeg/jpeg_header.hpp"

/// \file
/// What the device's kernels do, in plain sequence on the host, with the same tables, steps and arithmetic. For tests
/// where there is no GPU; libjpeg-turbo is several times faster.

namespace slidestream::cuda {

/// A scan without stuffed bytes and restart markers.
struct UnstuffedScan {
  std::vector<std::uint32_t> words;      ///< the first byte is the highest; a few zero words at the end
  std::vector<std::uint32_t> intervals;  ///< first byte of each restart interval, and one beyond the last
};

/// Where a decoded tile's pixels go, and which part of it.
struct HostTarget {
  std::uint8_t* plane = nullptr;       ///< of luminance, or for RGB
  std::uint8_t* components = nullptr;  ///< the tile's, for RGB: see component_layout.hpp
  std::int64_t origin = 0;             ///< bytes from there to the tile's own pixel (0, 0), which may lie outside
  std::int64_t pitch = 0;              ///< bytes from a row to the next
  std::uint32_t first_column = 0;
  std::uint32_t first_row = 0;
  std::uint32_t columns = 0;
  std::uint32_t rows = 0;
  bool inverted = false;
};

/// Decodes tiles as the device does.
class HostJpegDecoder {
 public:
  /// Decodes a tile to `width` x `height` pixels of the demand's format. \returns why the result can't be vouched for.
  JpegReason decode(std::span<const std::byte> bytes, const JpegTableReferences& tables, const TileDemand& demand);

  /// Decodes tile `number` of a finished batch from what the device is told of it, into the batch's plane. \returns the
  /// tile's verdict. \param colours  what RGB is converted by; null: it stays
  JpegReason decode(std::uint8_t* plane, const JpegBatch& batch, std::uint32_t number,
                    std::span<const std::byte> compressed, const ColourProgram* colours = nullptr);

  std::uint32_t width() const { return header_.width; }
  std::uint32_t height() const { return header_.height; }
  std::span<const std::uint8_t> pixels() const { return pixels_; }
  /// Of the last tile of a batch for RGB: its components, as `ComponentLayout` says.
  std::span<const std::uint8_t> components() const { return components_; }

 private:
  JpegReason decode_scan(std::span<const std::byte> bytes, std::uint32_t per_interval, const HostTarget& target);
  JpegReason decode_interval(std::size_t index, std::uint32_t first_cycle, std::uint32_t cycles,
                             const HostTarget& target);
  JpegReason decode_tile(const JpegDeviceTile& tile, const JpegDeviceLuminance* luminance,
                         std::span<const std::byte> scan, std::uint8_t* plane, const ColourProgram* colours);
  void prepare_arena();

  JpegHeader header_;
  JpegCoding coding_;
  JpegGeometry geometry_;
  UnstuffedScan scan_;
  std::vector<std::uint8_t> arena_;
  std::vector<std::uint8_t> components_;
  std::vector<std::uint8_t> pixels_;
};

}  // namespace slidestream::cuda
