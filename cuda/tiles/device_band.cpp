#include <algorithm>
#include <limits>
#include <stdexcept>

#include <slidestream/stitch.hpp>

#include "cuda/tiles/stitch.hpp"
#include "image/mirror.hpp"
#include "image/stitch_blend.hpp"
#include "runtime/cuda/check.hpp"
#include "runtime/cuda/resources.hpp"

namespace slidestream {

using runtime::cuda::DeviceMemory;

struct DeviceStitchBand::Memory {
  Memory(std::uint64_t bytes, std::size_t places, const std::vector<std::uint16_t>& of_ramp)
      : tiles(static_cast<std::size_t>(bytes)),
        absent(places),
        ramp(of_ramp.size() * sizeof(std::uint16_t)),
        wrong(sizeof(std::uint32_t)) {
    if (!of_ramp.empty()) {
      runtime::cuda::copy_to_device(ramp.bytes().data(), of_ramp.data(), ramp.bytes().size());
    }
    constexpr std::uint32_t none = 0;
    runtime::cuda::copy_to_device(wrong.bytes().data(), &none, sizeof(none));
  }

  std::uint8_t* absent_at(std::size_t place) const {
    return reinterpret_cast<std::uint8_t*>(absent.bytes().data()) + place;
  }

  DeviceMemory tiles;   ///< two rows
  DeviceMemory absent;  ///< a byte each: not 0 where nothing is there; written before it is read
  DeviceMemory ramp;
  DeviceMemory wrong;  ///< as `TileValues` has it
};

namespace {

std::size_t place_of(const StitchPlan& plan, StitchTile tile) {
  return static_cast<std::size_t>(tile.row % 2 * plan.x.count + tile.column);
}

}  // namespace

DeviceStitchBand::DeviceStitchBand(const StitchPlan& plan, const NetworkOutput& output, StitchWeights weights)
    : plan_(plan), output_(output), rows_(plan) {
  check_stitched(output);
  memory_ = std::make_unique<Memory>(StitchBand::bytes(plan, output), static_cast<std::size_t>(2 * plan.x.count),
                                     stitch_ramp(weights, plan.x.overlap));
}

DeviceStitchBand::~DeviceStitchBand() = default;

void DeviceStitchBand::check(StitchTile tile) const {
  const bool inside = tile.column >= 0 && tile.column < plan_.x.count && tile.row >= 0 && tile.row < plan_.y.count;
  if (!inside || !has_room(tile.row)) throw std::invalid_argument("a tile has no room");
}

void DeviceStitchBand::put(StitchTile tile, std::span<const float> values, void* stream) {
  check(tile);
  const std::int64_t pixels = plan_.x.tile * plan_.y.tile;
  if (values.size() != static_cast<std::size_t>(pixels * output_.channels)) {
    throw std::invalid_argument("a tile has other values than its image has samples");
  }
  const std::size_t place = place_of(plan_, tile);
  const std::size_t tile_bytes = values.size() * bytes_of(kept_sample(output_));
  cuda::TileValues mapped{};
  mapped.values = values.data();
  mapped.to = memory_->tiles.bytes().data() + place * tile_bytes;
  mapped.absent = memory_->absent_at(place);
  mapped.wrong = reinterpret_cast<std::uint32_t*>(memory_->wrong.bytes().data());
  mapped.number = static_cast<std::uint32_t>(tile.row * plan_.x.count + tile.column);
  mapped.pixels = static_cast<std::uint32_t>(pixels);
  mapped.output = output_;
  mapped.refuses_outside = output_.refuses_outside();
  mapped.sample = kept_sample(output_);
  auto* const on = static_cast<cudaStream_t>(stream);
  SLIDESTREAM_CUDA(cudaMemsetAsync(mapped.absent, 0, 1, on));
  cuda::map_tile(mapped, on);
  rows_.arrived(tile.row);
}

void DeviceStitchBand::skip(StitchTile tile, void* stream) {
  check(tile);
  SLIDESTREAM_CUDA(cudaMemsetAsync(memory_->absent_at(place_of(plan_, tile)), 1, 1, static_cast<cudaStream_t>(stream)));
  rows_.arrived(tile.row);
}

std::optional<StitchTile> DeviceStitchBand::first_wrong(void* stream) const {
  std::uint32_t found = 0;
  SLIDESTREAM_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
  SLIDESTREAM_CUDA(cudaMemcpy(&found, memory_->wrong.bytes().data(), sizeof(found), cudaMemcpyDeviceToHost));
  if (found == 0) return std::nullopt;
  return plan_.tile(std::numeric_limits<std::uint32_t>::max() - found);
}

void DeviceStitchBand::gather(const PixelView<MemorySpace::device>& out, void* stream) const {
  const Rect whole = {0, 0, plan_.image.width, plan_.image.height};
  if (out.format != StitchBand::format(output_) || out.image != plan_.image || !whole.contains(out.rect) ||
      out.rect.bottom() > ready()) {
    throw std::invalid_argument("pixels are wanted whose tiles aren't there, or of another image");
  }
  cuda::KeptTiles kept{};
  kept.x = plan_.x;
  kept.y = plan_.y;
  kept.tiles = memory_->tiles.bytes().data();
  kept.absent = memory_->absent_at(0);
  kept.ramp = reinterpret_cast<const std::uint16_t*>(memory_->ramp.bytes().data());
  kept.channels = output_.channels;
  kept.sample = kept_sample(output_);
  kept.labels = output_.kind == NetworkOutput::Kind::classes;
  kept.ignore = output_.ignore;
  kept.fill = fill_of(output_, out.format);
  cuda::gather_tiles(kept, out, static_cast<cudaStream_t>(stream));
}

void cut_tile(std::span<std::uint8_t> tile, const ConstPixelView<MemorySpace::device>& rows, const Rect& rect,
              void* stream) {
  const auto pixels = static_cast<std::size_t>(std::max<std::int64_t>(0, rect.width * rect.height));
  if (rows.format != rgb_format || rows.rect.x != 0 || rows.rect.width != rows.image.width ||
      tile.size() != pixels * 3) {
    throw std::invalid_argument("a tile is cut from whole rows of RGB, into memory of its size");
  }
  for (std::int64_t y = 0; y < rect.height; ++y) {
    const std::int64_t from = mirror_symmetric(rect.y + y, rows.image.height);
    if (from < rows.rect.y || from >= rows.rect.bottom()) throw std::invalid_argument("a tile's rows aren't there");
  }
  cuda::cut_mirrored(tile.data(), rows, rect, static_cast<cudaStream_t>(stream));
}

}  // namespace slidestream
