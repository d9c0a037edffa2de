#pragma once

#include <cstddef>
#include <cstdint>

#include "planning/strip_plan.hpp"

namespace slidestream {

/// How a GPU's lane stands when a batch has got its slot.
struct SlotDemand {
  std::size_t wanted = 0;              ///< slots that were asked for so far
  std::size_t ready = 0;               ///< of them
  std::size_t taken = 0;               ///< of those, by batches
  std::int64_t batches_on_device = 0;  ///< on their way there, or being worked on
  std::int64_t pixels_on_device = 0;   ///< theirs
};

/// Whether the lane asks for one slot more: all are taken, none is on its way, and the device hasn't enough to do. It
/// has with a batch that is copied, one that is decoded and one whose windows are computed, if these have as many
/// pixels as two large ones. So a run that a GPU is the slowest part of gets along with a few slots, whose pinning
/// holds up its first launches, and one that waits for storage, for a CPU's decoder or for many small slides has them
/// all.
constexpr bool wants_slot(const SlotDemand& demand) {
  constexpr std::int64_t enough_batches = 3;
  constexpr std::int64_t enough_pixels = 2 * device_batch_pixels;
  if (demand.ready < demand.wanted || demand.taken < demand.ready) return false;
  return demand.batches_on_device < enough_batches || demand.pixels_on_device < enough_pixels;
}

}  // namespace slidestream
