#include "cuda/encode/encode_batch.hpp"

#include <algorithm>
#include <stdexcept>

namespace slidestream::cuda {

void require_sound(const JpegEncoderLimits& limits) {
  if (limits.tiles == 0) throw std::invalid_argument("a JPEG encoder for no tiles");
  if (limits.side < 16 || limits.side > JpegEncoderLimits::most_side || limits.side % 16 != 0) {
    throw std::invalid_argument("JPEG tiles have sides of 16 to 1024 pixels, a multiple of 16");
  }
  if (limits.format != luminance_format && limits.format != rgb_format) {
    throw std::invalid_argument("JPEG tiles hold 1 or 3 channels of 8 bits, nothing else");
  }
  if (std::uint64_t{limits.tiles} * grid_of(limits).bands >= BandRecord::nowhere - 32 ||
      most_scratch_bytes(limits) / BandRecord::unit_bytes >= BandRecord::nowhere ||
      limits.scratch_bytes / BandRecord::unit_bytes >= BandRecord::nowhere) {
    throw std::length_error("a batch of so many JPEG tiles can't be counted");
  }
}

EncodeTask make_encode_task(const JpegEncoderLimits& limits, const ConstPixelView<MemorySpace::device>& plane,
                            std::span<const JpegTilePosition> tiles) {
  if (plane.format != limits.format) throw std::invalid_argument("the JPEG encoder's plane has another pixel format");
  if (tiles.size() > limits.tiles) throw std::length_error("more tiles than the JPEG encoder was made for");
  const Rect& held = plane.rect;
  // The kernels count columns and rows in 32 bits.
  constexpr std::int64_t most = 1LL << 31;
  if (held.x < 0 || held.y < 0 || plane.image.width > most || plane.image.height > most) {
    throw std::invalid_argument("the JPEG encoder's plane lies outside its image");
  }
  for (const JpegTilePosition& tile : tiles) {
    Rect wanted{tile.x, tile.y, limits.side, limits.side};
    wanted.width = std::min<std::int64_t>(wanted.right(), plane.image.width) - wanted.x;
    wanted.height = std::min<std::int64_t>(wanted.bottom(), plane.image.height) - wanted.y;
    if (wanted.width < 1 || wanted.height < 1 || !held.contains(wanted)) {
      throw std::invalid_argument("a tile to encode isn't in the plane");
    }
  }
  EncodeTask task{};
  task.plane = reinterpret_cast<const std::uint8_t*>(plane.data);
  task.pitch = plane.pitch;
  task.plane_x = static_cast<std::uint32_t>(held.x);
  task.plane_y = static_cast<std::uint32_t>(held.y);
  task.image_columns = static_cast<std::uint32_t>(plane.image.width);
  task.image_rows = static_cast<std::uint32_t>(plane.image.height);
  task.channels = static_cast<std::uint32_t>(limits.format.channels);
  task.side = limits.side;
  task.mcu_blocks = mcu_blocks_of(limits);
  task.grid = grid_of(limits);
  task.tile_count = static_cast<std::uint32_t>(tiles.size());
  task.scratch_capacity = static_cast<std::uint32_t>(limits.scratch_bytes / BandRecord::unit_bytes);
  return task;
}

}  // namespace slidestream::cuda
