#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <slidestream/results.hpp>

#include "planning/batch_tiles.hpp"
#include "planning/strip_plan.hpp"
#include "runtime/handoff.hpp"
#include "runtime/slot_pool.hpp"
#include "stages/run/slide_run.hpp"

/// \file
/// What travels through the graph. A batch is a strip (or several) of one slide with the slot that holds its bytes.

namespace slidestream {

struct Band;
struct Parcel;

/// Where the bytes of a batch's tiles are read to.
enum class BytesGo {
  to_slot,    ///< the host's slot. What a device decodes is copied there afterwards
  by_ring,    ///< the device's slot, by way of its pinned ring: the host's slot has the tiles' headers
  to_device,  ///< the device's slot, by cuFile: as before
};

/// A strip under way. There are as many as slots; each is reused for the whole run.
struct Batch {
  std::size_t lane = 0;
  std::uint64_t number = 0;  ///< of those that came to the lane before it
  runtime::Slot slot;
  std::shared_ptr<SlideRun> slide;
  Chain* chain = nullptr;       ///< of the slide
  std::size_t strip_index = 0;  ///< in the slide's plan
  StripPlan strip;
  bool empty = false;  ///< carries the end of a failed or abandoned chain: no work, but keeps its place in it
  bool last = false;   ///< no strip of the chain comes after

  std::vector<ReadChunk> chunks;
  std::vector<ReadPart> parts;            ///< of them
  std::atomic<std::size_t> next_part{0};  ///< that no thread reads yet
  std::vector<BatchTile> tiles;
  std::vector<std::uint32_t> tile_order;      ///< with `by_ring`: those that have bytes, in the order of these
  std::atomic<std::size_t> fronts_end{0};     ///< with `by_ring`: of the host's slot: headers of tiles end there
  std::atomic<std::size_t> parts_to_come{0};  ///< with `to_device`: whose bytes aren't on the device yet
  bool decode_on_device = false;
  BytesGo bytes = BytesGo::to_slot;
  std::size_t compressed_end = 0;      ///< of the slot: bytes before it are what was read
  std::size_t descriptors_offset = 0;  ///< of the slot: what the device is told of each tile
  std::size_t patches_offset = 0;      ///< of the slot: room for tiles that the CPU decodes after all
  std::vector<std::uint32_t> flagged;  ///< tiles that the device doesn't decode, or doesn't vouch for
  std::size_t patched = 0;             ///< of them, done
  std::size_t patching = 0;            ///< of them, under way
  /// In the slot: pixel (panel.x0, strip.y0) of each plane; on the CPU carried rows end before it.
  ByPlane<std::uint8_t*> own_rows{};
  std::shared_ptr<Band> band;  ///< rows of images that it completes; null without images, or where levels are made too
  std::vector<std::shared_ptr<Parcel>> parcels;  ///< what it makes of images whose levels the device makes
  SpectrumSums sums;
  std::mutex sums_mutex;
  std::atomic<std::uint64_t> missing_tiles{0};
  std::atomic<std::uint64_t> bad_tiles{0};
  std::atomic<std::uint64_t> fallback_tiles{0};  ///< flagged ones that were there to be decoded
  std::atomic<std::int64_t> tasks_left{0};  ///< of the present stage; the task that takes it to 0 hands the batch on
  runtime::Clock::time_point ready;         ///< when it was handed on
  runtime::Handoff handoff;                 ///< orders what one stage wrote before what the next one reads

  const PanelPlan& panel() const { return slide->plan.panels[strip.panel]; }
  /// Columns and rows of outputs that the batch completes for an operator.
  const OutputRange& columns(std::size_t op) const { return slide->plan.columns(strip.panel, op); }
  const OutputRange& rows(std::size_t op) const { return slide->plan.rows(strip_index, op); }
  /// Whether nothing is to be done for it, or from an item of its on.
  bool skip(std::int64_t item = SlideRun::all_items) const noexcept {
    return empty || slide->abandoned.load(std::memory_order_relaxed) || slide->failed_before({strip_index, item});
  }
  std::size_t strip_of_chain() const noexcept { return strip_index - chain->plan.first_strip; }
  /// Whether the device's part of it begins on the host: rows that the CPU decoded, or bytes that it looks at.
  bool has_bytes_to_send() const noexcept { return bytes == BytesGo::to_slot && !skip(); }
  /// Bytes that a tile which the CPU decodes after all takes in the room for patches: its planes one after the other.
  std::int64_t patch_bytes() const;
  /// Of pixel (panel.x0, strip.y0) in a plane whose first row is carry_in_y0.
  std::ptrdiff_t own_offset(std::size_t plane) const {
    return (strip.y0 - strip.carry_in_y0[plane]) * panel().pitch[plane];
  }
};

}  // namespace slidestream
