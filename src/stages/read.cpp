#include "stages/read.hpp"

#include <algorithm>
#include <mutex>

#include "planning/device_tail.hpp"
#include "planning/tile_ranges.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/images/slide_images.hpp"
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
      batch.bytes = bytes_of(batch);
      if (context_.gpus != nullptr) context_.gpus->begin(batch);
      lay_out(batch);
      threads = reads_.share_out(batch);
      context_.read.add(1, 0);
    });
    return threads;
  }

  bool run(Batch& batch) override {
    if (batch.skip(0)) return false;
    std::size_t at = 0;
    try {
      SlotReads::Turn turn = reads_.take(batch);
      if (turn.empty()) return false;
      at = turn.first_chunk(batch);
      if (batch.skip(static_cast<std::int64_t>(at))) return false;
      runtime::StageMeter::Busy busy(context_.read, payload_of(batch));
      busy.add(0, reads_.read(batch, turn, at));
      return true;
    } catch (...) {
      fail(batch, std::current_exception(), static_cast<std::int64_t>(at));
      return false;
    }
  }

  void read_again(Batch& batch) override {
    runtime::StageMeter::Busy busy(context_.read, payload_of(batch));
    std::size_t next = batch.patched;
    try {
      const Slide& slide = *batch.slide->slide;
      for (; next < batch.patched + batch.patching; ++next) {
        const BatchTile& tile = batch.tiles[batch.flagged[next]];
        if (batch.skip(tile.index)) return;
        if (tile.source != BatchTile::Source::file) continue;
        // Headers that stand where it goes were for the description, which is done.
        slide.read(slide.tile(batch.slide->level, tile.index).offset,
                   batch.slot.memory().subspan(tile.offset, tile.length));
        busy.add(0, tile.length);
      }
    } catch (...) {
      fail(batch, std::current_exception(), batch.tiles[batch.flagged[next]].index);
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

  /// Bytes that the host looks at, beyond the headers of tiles, come to its slot.
  static BytesGo bytes_of(const Batch& batch) {
    const SlideRun& slide = *batch.slide;
    if (slide.io == InputIo::cufile) return BytesGo::to_device;
    const bool is_copied = slide.images != nullptr && slide.images->copied != nullptr;
    const bool is_jpeg2000 = slide.slide->info().levels[slide.level].codec == Codec::jpeg2000;
    return batch.decode_on_device && !is_copied && !is_jpeg2000 ? BytesGo::by_ring : BytesGo::to_slot;
  }

  /// Slot: for each plane carried rows (where rows are carried on the host) and own rows, compressed bytes. When a
  /// device decodes: compressed bytes or headers of tiles, room for patches.
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
    batch.fronts_end.store(0, std::memory_order_relaxed);
    const bool in_slot = batch.bytes == BytesGo::to_slot;
    for (BatchTile& tile : batch.tiles) {
      tile.front_offset = in_slot ? tile.offset : 0;
      tile.front_length = in_slot ? tile.length : 0;
    }
  }

  RunContext& context_;
  SlotReads reads_;
};

}  // namespace

std::unique_ptr<ReadStage> make_read_stage(RunContext& context) { return std::make_unique<Read>(context); }

}  // namespace slidestream
