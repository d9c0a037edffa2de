#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg/jpeg_batch.hpp"
#include "cuda/jpeg/jpeg_coding.hpp"

/// \file
/// Where a tile's decoded components wait to become RGB: block after block in the order of the scan, so that whoever
/// decodes needs no coordinates, and what it writes at once is one line of memory. Blocks of 8 x 8 samples, row by row;
/// where a lane hands over pairs, a row of the first beside that of the second.

namespace slidestream::cuda {

/// A tile's components: how they were sampled, and where a sample lies.
class ComponentLayout {
 public:
  SLIDESTREAM_HOST_DEVICE ComponentLayout(const JpegCoding& coding, const JpegDeviceTile& tile)
      : coding_(coding),
        width_(tile.frame_width),
        height_(tile.frame_height),
        mcus_across_(std::uint32_t{tile.cycles_across} * (tile.blocks_in_cycle / coding.block_count)),
        paired_(tile.blocks_in_cycle % 2 == 0) {}

  /// Sampling factors of the first component over component `c`'s: output columns and rows a sample.
  SLIDESTREAM_HOST_DEVICE std::uint32_t columns_a_sample(std::uint32_t c) const {
    return coding_.horizontal / coding_.components[c].horizontal;
  }
  SLIDESTREAM_HOST_DEVICE std::uint32_t rows_a_sample(std::uint32_t c) const {
    return coding_.vertical / coding_.components[c].vertical;
  }

  /// Samples that stand for something: what lies beyond pads the last MCU.
  SLIDESTREAM_HOST_DEVICE std::uint32_t width(std::uint32_t c) const {
    return (width_ + columns_a_sample(c) - 1) / columns_a_sample(c);
  }
  SLIDESTREAM_HOST_DEVICE std::uint32_t height(std::uint32_t c) const {
    return (height_ + rows_a_sample(c) - 1) / rows_a_sample(c);
  }

  /// Bytes from a row of a block to the next, and from a row of MCUs to the next.
  SLIDESTREAM_HOST_DEVICE std::uint32_t row_bytes() const { return paired_ ? 16 : 8; }
  SLIDESTREAM_HOST_DEVICE std::uint32_t mcu_row_bytes() const { return 64U * mcus_across_ * coding_.block_count; }

  /// Bytes from the tile's first block to the first sample of block (x, y) of component `c`.
  SLIDESTREAM_HOST_DEVICE std::uint32_t block_offset(std::uint32_t c, std::uint32_t x, std::uint32_t y) const {
    const JpegCoding::Component& component = coding_.components[c];
    const std::uint32_t mcu = y / component.vertical * mcus_across_ + x / component.horizontal;
    const std::uint32_t block = mcu * coding_.block_count + component.first_block +
                                y % component.vertical * component.horizontal + x % component.horizontal;
    return paired_ ? block / 2 * 128 + block % 2 * 8 : block * 64;
  }

  /// Of sample (x, y) of component `c`.
  SLIDESTREAM_HOST_DEVICE std::uint32_t offset(std::uint32_t c, std::uint32_t x, std::uint32_t y) const {
    return block_offset(c, x / 8, y / 8) + y % 8 * row_bytes() + x % 8;
  }

  SLIDESTREAM_HOST_DEVICE const JpegCoding& coding() const { return coding_; }
  SLIDESTREAM_HOST_DEVICE std::uint32_t frame_width() const { return width_; }
  SLIDESTREAM_HOST_DEVICE std::uint32_t frame_height() const { return height_; }

 private:
  const JpegCoding& coding_;
  std::uint32_t width_;  // of the frame, pixels
  std::uint32_t height_;
  std::uint32_t mcus_across_;
  bool paired_;
};

}  // namespace slidestream::cuda
