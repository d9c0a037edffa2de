#include "stages/read.hpp"

#include <algorithm>
#include <mutex>

#include "planning/device_tail.hpp"
#include "planning/tile_ranges.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/range_payload.hpp"
#include "stages/slot_reads.hpp"

namespace slidestream {
namespace {

class Read final : public ReadStage {
 public:
  explicit Read(RunContext& context) : context_(context), reads_(context) {}

  std::size_t begin(Batch& batch) override {
    context_.read.add_wait(batch.ready);
    batch.slide->begin_work();
    std::size_t threads = 0;
    guarded(context_, "read", batch, [&] {
      SlideRun& slide = *batch.slide;
      std::call_once(slide.io_chosen, [&] { reads_.choose(slide); });
      batch.bytes_on_device = slide.io == InputIo::cufile;
      lay_out(batch);
      if (context_.gpus != nullptr) context_.gpus->pin(batch);
      threads = reads_.share_out(batch);
      batch.next_chunk.store(0, std::memory_order_relaxed);
      context_.read.add(1, 0);
    });
    return threads;
  }

  bool run(Batch& batch) override {
    if (batch.skip(0)) return false;
    std::size_t next = batch.next_chunk.fetch_add(batch.chunks_a_turn, std::memory_order_relaxed);
    if (next >= batch.chunks.size() || batch.skip(static_cast<std::int64_t>(next))) return false;
    runtime::StageMeter::Busy busy(context_.read, payload_of(batch));
    try {
      const std::size_t end = std::min(next + batch.chunks_a_turn, batch.chunks.size());
      std::uint64_t bytes = 0;
      for (std::size_t i = next; i < end; ++i) bytes += batch.chunks[i].length;
      reads_.read(batch, next, end, next);
      busy.add(0, bytes);
      return true;
    } catch (...) {
      fail(batch, std::current_exception(), static_cast<std::int64_t>(next));
      return false;
    }
  }

 private:
  /// Storage that doesn't come back may have been waited for until a stop, which leaves the slide, or until its time
  /// was over, which is the cause then.
  void fail(Batch& batch, std::exception_ptr failure, std::int64_t chunk) const {
    if (context_.stopping()) {
      batch.slide->abandoned.store(true);
      return;
    }
    try {
      context_.check_time(*batch.slide);
    } catch (...) {
      failure = std::current_exception();
    }
    context_.fail("read", *batch.slide, failure, {batch.strip_index, chunk});
  }

  /// Slot: for each plane carried rows (where rows are carried on the host) and own rows, compressed bytes. When a
  /// device decodes: compressed bytes, descriptors of the tiles, room for patches.
  void lay_out(Batch& batch) const {
    const SlideRun& slide = *batch.slide;
    const Level& level = slide.slide->info().levels[slide.level];
    const StripPlan& strip = batch.strip;
    const PanelPlan& panel = batch.panel();
    const std::span<std::byte> memory = batch.slot.memory();
    std::ptrdiff_t rows = 0;
    for (std::size_t plane = 0; plane < plane_count; ++plane) {
      const std::ptrdiff_t pitch = panel.pitch[plane];
      const std::ptrdiff_t carried = context_.carried_on_device ? 0 : (strip.y0 - strip.carry_in_y0[plane]) * pitch;
      batch.own_rows[plane] = reinterpret_cast<std::uint8_t*>(memory.data()) + rows + carried;
      if (!batch.decode_on_device) rows += carried + (strip.y1 - strip.y0) * pitch;
    }
    const auto rows_end = static_cast<std::size_t>(rows);

    batch.tiles.clear();
    for (std::int64_t row = strip.first_tile_row; row < strip.first_tile_row + strip.tile_rows; ++row) {
      for (std::int64_t column = panel.first_tile_column; column < panel.first_tile_column + panel.tile_columns;
           ++column) {
        BatchTile job;
        job.index = row * level.columns + column;
        job.owned = column >= panel.first_owned_tile_column && row >= strip.first_owned_tile_row;
        const std::int64_t left = column * level.tile_width;
        const std::int64_t top = row * level.tile_height;
        const std::int64_t x0 = std::max(left, panel.x0);
        job.from_x = x0 - left;
        job.from_y = 0;
        for (std::size_t plane = 0; plane < plane_count; ++plane) {
          HostPixels& out = job.out[plane];
          out.width = std::min(left + level.tile_width, panel.x1) - x0;
          out.height = std::min(top + level.tile_height, strip.y1) - top;
          out.pitch = panel.pitch[plane];
          out.format = plane_formats[plane];
          job.place[plane] = (top - strip.y0) * panel.pitch[plane] +
                             (x0 - panel.x0) * static_cast<std::int64_t>(out.format.pixel_bytes());
          if (batch.decode_on_device || out.pitch == 0) continue;
          out.data = batch.own_rows[plane] + job.place[plane];
        }
        batch.tiles.push_back(job);
      }
    }
    std::size_t end = memory.size();
    if (batch.decode_on_device) {
      const DeviceTail tail = device_tail(memory.size(), batch.tiles.size(), batch.patch_bytes());
      end = batch.descriptors_offset = tail.descriptors_offset;
      batch.patches_offset = tail.patches_offset;
      batch.flagged.clear();
      batch.patched = batch.patching = 0;
    }
    plan_reads(batch.chunks, batch.tiles, {*slide.slide, slide.level}, rows_end, end - rows_end,
               SlotReads::block(slide.io));
    batch.compressed_end = 0;
    for (const ReadChunk& chunk : batch.chunks) {
      batch.compressed_end = std::max(batch.compressed_end, chunk.slot_offset + chunk.length);
    }
  }

  RunContext& context_;
  SlotReads reads_;
};

}  // namespace

std::unique_ptr<ReadStage> make_read_stage(RunContext& context) { return std::make_unique<Read>(context); }

}  // namespace slidestream
