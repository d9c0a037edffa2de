#pragma once

#include <cstddef>
#include <cstdint>

namespace slidestream {

/// What stands at the end of a slot whose tiles are decoded on a device, behind their compressed bytes.
struct DeviceTail {
  static constexpr std::size_t descriptor_bytes = 64;  ///< room for what the device is told of a tile
  std::size_t descriptors_offset = 0;
  std::size_t patches_offset = 0;  ///< room for at least one tile, and for a sixteenth of the slot
};
/// For `tiles` tiles of `patch_bytes` in all planes in a slot. When they don't fit, the offsets are 0.
DeviceTail device_tail(std::size_t slot_bytes, std::size_t tiles, std::int64_t patch_bytes);

}  // namespace slidestream
