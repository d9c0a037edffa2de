#include "stages/decode.hpp"

#include <oneapi/tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <slidestream/error.hpp>

#include "stages/gpu/gpu_set.hpp"
#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

/// Pixels that make a task of about a millisecond for JPEG; other codecs take longer and get less.
constexpr std::int64_t kPixelsPerTask = 8 * 256 * 256;

class Decode final : public DecodeStage {
 public:
  explicit Decode(RunContext& context) : context_(context) {}

  std::size_t tasks(const Batch& batch) const override {
    if (batch.skip()) return 0;
    const std::size_t run = run_length(batch);
    return (batch.tiles.size() + run - 1) / run;
  }

  TileRun task(Batch& batch, std::size_t i) const override {
    const std::size_t run = run_length(batch);
    const std::size_t first = i * run;
    return {&batch, first, std::min(run, batch.tiles.size() - first)};
  }

  void run(const TileRun& tiles) override {
    Batch& batch = *tiles.batch;
    runtime::StageMeter::Busy busy(context_.decode, payload_of(batch));
    guarded(
        context_, "decode", batch,
        [&] {
          if (batch.decode_on_device) {
            context_.gpus->prepare(batch);
            busy.add(tiles.count, 0);
            return;
          }
          TileDecoder& decoder = decoders_.local();
          std::uint64_t bytes = 0;
          for (std::size_t i = tiles.first; i < tiles.first + tiles.count && !batch.skip(batch.tiles[i].index); ++i) {
            decode(batch, batch.tiles[i], decoder);
            for (const HostPixels& out : batch.tiles[i].out) {
              if (out.data != nullptr) bytes += out.row_bytes() * static_cast<std::uint64_t>(out.height);
            }
          }
          busy.add(tiles.count, bytes);
        },
        first_tile(batch, tiles.first));
  }

  void run_flagged(const TileRun& tiles) override {
    runtime::StageMeter::Busy busy(context_.decode, payload_of(*tiles.batch));
    Batch& batch = *tiles.batch;
    guarded(
        context_, "decode", batch,
        [&] {
          const std::int64_t patch_bytes = batch.patch_bytes();
          TileDecoder& decoder = decoders_.local();
          for (std::size_t i = tiles.first; i < tiles.first + tiles.count; ++i) {
            BatchTile& tile = batch.tiles[batch.flagged[i]];
            if (batch.skip(tile.index)) break;
            std::uint8_t* to = reinterpret_cast<std::uint8_t*>(batch.slot.memory().data() + batch.patches_offset) +
                               static_cast<std::int64_t>(i - batch.patched) * patch_bytes;
            std::uint64_t bytes = 0;
            for (HostPixels& out : tile.out) {
              if (out.pitch == 0) continue;
              out.data = to + bytes;
              out.pitch = static_cast<std::ptrdiff_t>(out.row_bytes());
              bytes += out.row_bytes() * static_cast<std::uint64_t>(out.height);
            }
            if (tile.source == BatchTile::Source::file) ++batch.fallback_tiles;
            decode(batch, tile, decoder);
            busy.add(1, bytes);
          }
        },
        batch.tiles[batch.flagged[tiles.first]].index);
  }

 private:
  static std::int64_t first_tile(const Batch& batch, std::size_t i) {
    return i < batch.tiles.size() ? batch.tiles[i].index : SlideRun::all_items;
  }
  static std::size_t run_length(const Batch& batch) {
    // Described to the device in one go, a microsecond a tile.
    if (batch.decode_on_device) return std::max<std::size_t>(1, batch.tiles.size());
    const Level& level = batch.slide->slide->info().levels[batch.slide->level];
    const std::int64_t pixels = std::max<std::int64_t>(1, level.tile_width * level.tile_height);
    const std::int64_t per_task = level.codec == Codec::jpeg2000 ? kPixelsPerTask / 8 : kPixelsPerTask;
    return static_cast<std::size_t>(std::max<std::int64_t>(1, per_task / pixels));
  }

  void decode(Batch& batch, BatchTile& tile, TileDecoder& decoder) {
    if (tile.source == BatchTile::Source::missing) {
      fill_white(tile.out);
      if (tile.owned) ++batch.missing_tiles;
      return;
    }
    try {
      if (tile.source == BatchTile::Source::outside_file) throw TileError("its bytes lie outside the file");
      if (tile.source == BatchTile::Source::too_long)
        throw TileError("it claims more bytes than its pixels could need");
      const HostPixels& luminance = tile.out[luminance_plane];
      const HostPixels& rgb = tile.out[rgb_plane];
      const Slide& slide = *batch.slide->slide;
      const std::size_t level = batch.slide->level;
      const std::span<const std::byte> bytes = batch.slot.memory().subspan(tile.offset, tile.length);
      if (rgb.data == nullptr) {
        decoder.decode(slide, level, tile.index, bytes, tile.from_x, tile.from_y, luminance);
      } else if (luminance.data == nullptr) {
        decoder.decode(slide, level, tile.index, bytes, tile.from_x, tile.from_y, rgb);
      } else {
        decoder.decode_both(slide, level, tile.index, bytes, tile.from_x, tile.from_y, rgb, luminance);
      }
    } catch (const StoppedError&) {
      // A stop leaves the slide unfinished.
      if (context_.is_late(*batch.slide->work)) throw Error(context_.text_of_limit());
      batch.slide->abandoned.store(true);
    } catch (const TileError& error) {
      if (context_.config.decode.on_bad_tile == BadTilePolicy::fail) {
        batch.slide->fail("decode", text_of_tile(*batch.slide, tile.index) + " is bad: " + error.what(),
                          {batch.strip_index, tile.index}, tile.index);
        return;
      }
      tile.bad = true;
      fill_white(tile.out);
      if (tile.owned) ++batch.bad_tiles;
    }
  }

  static void fill_white(const ByPlane<HostPixels>& planes) {
    for (const HostPixels& out : planes) {
      if (out.data == nullptr) continue;
      for (std::int64_t y = 0; y < out.height; ++y) std::memset(out.data + y * out.pitch, 255, out.row_bytes());
    }
  }

  RunContext& context_;
  tbb::enumerable_thread_specific<TileDecoder> decoders_;
};

}  // namespace

std::unique_ptr<DecodeStage> make_decode_stage(RunContext& context) { return std::make_unique<Decode>(context); }

}  // namespace slidestream
