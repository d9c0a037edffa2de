#pragma once

#include <cstdint>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg/entropy.hpp"
#include "cuda/jpeg/jpeg_coding.hpp"
#include "cuda/jpeg/jpeg_header.hpp"

/// \file
/// How a frame is cut into MCUs and events. An *event* is what a lane hands to the inverse transform: 8 rows of 16
/// (pairs) or 8 pixels; where components are kept apart, one or two blocks in the scan's order, whose place is their
/// number alone. A *cycle* is the MCU, or two of them, after which events repeat.

namespace slidestream::cuda {

struct JpegGeometry {
  LaneMode mode;
  std::uint32_t cycles_across;
  std::uint32_t cycle_rows;
  std::uint32_t events_across;  ///< of a cycle; of luminance only, as the next two
  std::uint32_t events_down;
  std::uint32_t event_width;      ///< pixels; 8 rows high
  std::uint32_t blocks_in_cycle;  ///< of all components
};

/// `restart_interval` in MCUs, 0 for none: a pair of blocks may not lie on both sides of a restart marker.
SLIDESTREAM_HOST_DEVICE JpegGeometry jpeg_geometry(const JpegCoding& coding, std::uint32_t width, std::uint32_t height,
                                                   std::uint32_t restart_interval) {
  const std::uint32_t h = coding.horizontal;
  const std::uint32_t v = coding.vertical;
  const std::uint32_t across = (width + 8 * h - 1) / (8 * h);
  JpegGeometry geometry{};
  const bool from_two = h == 1 && v == 1 && across % 2 == 0 && restart_interval % 2 == 0;
  geometry.mode = coding.mixes_components != 0 ? LaneMode::rgb
                  : h % 2 == 0 || from_two     ? LaneMode::pairs
                                               : LaneMode::single;
  if (coding.makes_rgb != 0) {
    const bool even = coding.block_count % 2 == 0 || (across % 2 == 0 && restart_interval % 2 == 0);
    geometry.mode = even ? LaneMode::component_pairs : LaneMode::component_blocks;
  }
  const std::uint32_t mcus = mcus_per_cycle(geometry.mode, coding);
  geometry.cycles_across = across / mcus;
  geometry.cycle_rows = (height + 8 * v - 1) / (8 * v);
  geometry.events_across = geometry.mode == LaneMode::pairs ? h * mcus / 2 : h;
  geometry.events_down = v;
  geometry.event_width = geometry.mode == LaneMode::pairs ? 16 : 8;
  geometry.blocks_in_cycle = coding.block_count * mcus;
  return geometry;
}

/// What a frame's components take where they are kept for RGB, in bytes: whole MCUs, and whole lines of two blocks.
inline std::uint64_t component_bytes(const JpegHeader& header) noexcept {
  const bool alone = header.component_count == 1;
  const std::uint32_t h = alone ? 1 : header.components[0].horizontal;
  const std::uint32_t v = alone ? 1 : header.components[0].vertical;
  std::uint64_t blocks = alone ? 1 : 0;
  for (std::uint32_t i = 0; i < header.component_count && !alone; ++i) {
    blocks += std::uint64_t{header.components[i].horizontal} * header.components[i].vertical;
  }
  blocks *= std::uint64_t{(header.width + 8 * h - 1) / (8 * h)} * ((header.height + 8 * v - 1) / (8 * v));
  return (blocks + 1) / 2 * 128;
}

}  // namespace slidestream::cuda
