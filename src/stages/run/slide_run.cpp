#include "stages/run/slide_run.hpp"

#include <algorithm>

namespace slidestream {

std::uint64_t SlideRun::packed(Place place) noexcept {
  constexpr int item_bits = 36;
  constexpr std::uint64_t most_items = (std::uint64_t{1} << item_bits) - 1;
  constexpr std::uint64_t most_strips = (std::uint64_t{1} << (64 - item_bits)) - 2;
  return std::min<std::uint64_t>(place.strip, most_strips) << item_bits |
         std::min(static_cast<std::uint64_t>(place.item), most_items);
}

void SlideRun::fail(const char* stage, const std::string& cause, Place place, std::optional<std::int64_t> tile) {
  const std::lock_guard lock(mutex_);
  if (packed(place) >= failed_at_.load(std::memory_order_relaxed)) return;
  result.fail({stage, tile, cause});
  failed_at_.store(packed(place), std::memory_order_release);
}

std::string text_of_tile(const SlideRun& slide, std::int64_t index) {
  const std::int64_t columns = slide.slide->info().levels[slide.level].columns;
  return "tile " + std::to_string(index) + " (column " + std::to_string(index % columns) + ", row " +
         std::to_string(index / columns) + ")";
}

}  // namespace slidestream
