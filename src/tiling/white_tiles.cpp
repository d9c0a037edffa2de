#include "tiling/white_tiles.hpp"

#include <cstddef>
#include <string>

namespace slidestream {

void WhiteTiles::add(std::int32_t slide, std::int64_t tile, TileFate fate) {
  if (fate == TileFate::decoded) return;
  const std::lock_guard lock(mutex_);
  OfSlide& of = slides_[slide];
  const auto index = static_cast<std::size_t>(tile);
  if (of.seen.size() <= index) of.seen.resize(index + 1);
  if (of.seen[index]) return;
  of.seen[index] = true;
  ++(fate == TileFate::missing ? of.missing : of.bad);
}

void WhiteTiles::tell(std::int32_t end, const TileStreamOptions& options) {
  const std::lock_guard lock(mutex_);
  while (!slides_.empty() && slides_.begin()->first < end) {
    const auto& [slide, of] = *slides_.begin();
    if (options.warnings != nullptr) {
      options.warnings->add(
          options.slides[static_cast<std::size_t>(slide)],
          {std::to_string(of.missing) + " missing and " + std::to_string(of.bad) + " bad tiles, taken as white"});
    }
    slides_.erase(slides_.begin());
  }
}

}  // namespace slidestream
