#include "stages/gpu_tiles.hpp"

#include <algorithm>

#include "cuda/tiles/place.hpp"
#include "runtime/cuda/check.hpp"
#include "slide/slide_impl.hpp"
#include "stages/gpu.hpp"

namespace slidestream {
namespace {

static_assert(sizeof(cuda::PlacedTile) <= DeviceTail::descriptor_bytes);

const Level& level_of(const Batch& batch) { return batch.slide->slide->info().levels[batch.slide->level]; }

cuda::SampleLayout sample_layout(const Batch& batch) {
  const Level& level = level_of(batch);
  const int samples = batch.slide->slide->impl().details[batch.slide->level].samples;
  return {static_cast<std::uint32_t>(level.tile_width * samples), static_cast<std::uint32_t>(samples), level.colour};
}

/// The CPU's rule for tiles without a codec: all rows inside the image are there.
bool has_all_rows(const BatchTile& tile, const Level& level, int samples) {
  const std::int64_t row = tile.index / level.columns;
  const std::int64_t inside = std::min(level.tile_height, level.height - row * level.tile_height);
  return tile.length >= static_cast<std::size_t>(inside * level.tile_width * samples);
}

}  // namespace

bool device_decodes(const Config& config, const Slide& slide, std::size_t level) {
  return config.decode.device != DecodeDevice::cpu && slide.info().levels[level].codec == Codec::none;
}

std::size_t decode_scratch_bytes(std::size_t) { return 0; }

void describe_tiles(Batch& batch, std::size_t first, std::size_t count) {
  auto* described = reinterpret_cast<cuda::PlacedTile*>(batch.slot.memory().data() + batch.descriptors_offset);
  const Level& level = level_of(batch);
  const cuda::SampleLayout layout = sample_layout(batch);
  for (std::size_t i = first; i < first + count; ++i) {
    const BatchTile& tile = batch.tiles[i];
    cuda::PlacedTile& placed = described[i];
    placed = {};
    const bool missing = tile.source == BatchTile::Source::missing;
    const bool whole =
        tile.source == BatchTile::Source::file && has_all_rows(tile, level, static_cast<int>(layout.samples));
    if (!missing && !whole) {
      // The CPU's decoder says what it is.
      const std::lock_guard lock(batch.flagged_mutex);
      batch.flagged.push_back(static_cast<std::uint32_t>(i));
      continue;
    }
    if (missing && tile.owned) ++batch.missing_tiles;
    if (whole) {
      placed.source = tile.offset + static_cast<std::uint64_t>(tile.from_y) * layout.row_bytes +
                      static_cast<std::uint64_t>(tile.from_x) * layout.samples;
    }
    placed.destination = static_cast<std::uint64_t>(tile.place);
    placed.width = static_cast<std::uint32_t>(tile.out.width);
    placed.height = static_cast<std::uint32_t>(tile.out.height);
  }
}

std::size_t upload_tiles(const Batch& batch, const TileMemory& memory, cudaStream_t stream) {
  const std::span<std::byte> host = batch.slot.memory();
  const std::size_t described = batch.tiles.size() * sizeof(cuda::PlacedTile);
  if (batch.compressed_end > 0) {
    SLIDESTREAM_CUDA(
        cudaMemcpyAsync(memory.compressed.data(), host.data(), batch.compressed_end, cudaMemcpyHostToDevice, stream));
  }
  SLIDESTREAM_CUDA(cudaMemcpyAsync(memory.compressed.data() + batch.descriptors_offset,
                                   host.data() + batch.descriptors_offset, described, cudaMemcpyHostToDevice, stream));
  return batch.compressed_end + described;
}

void decode_tiles(const Batch& batch, const TileMemory& memory, cudaStream_t stream) {
  const auto* described =
      reinterpret_cast<const cuda::PlacedTile*>(memory.compressed.data() + batch.descriptors_offset);
  cuda::place_tiles(reinterpret_cast<std::uint8_t*>(memory.own_rows), batch.panel().pitch, memory.compressed.data(),
                    described, batch.tiles.size(), sample_layout(batch), stream);
}

}  // namespace slidestream
