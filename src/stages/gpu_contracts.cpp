#include "stages/gpu.hpp"

#include <algorithm>

namespace slidestream {

std::string why_not_on_gpus(const Config& config, const Operators& operators) {
  if (config.image.copy_levels == CopyLevels::shrink_on_load) return "tiles are decoded at half size on the CPU";
  bool reads = false;
  for (const auto& op : operators) {
    if (!op->reads_pixels()) continue;
    if (!op->computes_on_gpus()) return "the operator " + op->name() + " is computed on the CPU";
    reads = true;
  }
  return reads ? "" : "no operator reads the level's pixels";
}

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

const runtime::StageContract upload_contract = {
    "upload",
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::host,
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::device,
    runtime::Concurrency::serial,
};

const runtime::StageContract device_compute_contract = {
    "compute",
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::device,
    runtime::Payload::partial_sums,
    runtime::MemorySpace::host,
    runtime::Concurrency::serial,
};

}  // namespace slidestream
