#include "stages/run/batch.hpp"

namespace slidestream {

std::int64_t Batch::patch_bytes() const {
  const Level& level = slide->slide->info().levels[slide->level];
  return level.tile_width * level.tile_height * pixel_bytes_of(panel().pitch);
}

}  // namespace slidestream
