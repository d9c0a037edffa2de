#include "planning/device_tail.hpp"

#include <algorithm>

namespace slidestream {

DeviceTail device_tail(std::size_t slot_bytes, std::size_t tiles, std::int64_t patch_bytes) {
  constexpr std::size_t alignment = 4096;
  const std::size_t patches = std::max(static_cast<std::size_t>(patch_bytes), slot_bytes / 16);
  const std::size_t descriptors = tiles * DeviceTail::descriptor_bytes;
  if (patches + descriptors + 2 * alignment > slot_bytes) return {};
  DeviceTail tail;
  tail.patches_offset = (slot_bytes - patches) / alignment * alignment;
  tail.descriptors_offset = (tail.patches_offset - descriptors) / alignment * alignment;
  return tail;
}

}  // namespace slidestream
