#include "stages/network/network_batches.hpp"

#include <algorithm>
#include <utility>

namespace slidestream {

BatchFiller::Places BatchFiller::take(const std::weak_ptr<SlideImages>& images, std::size_t network,
                                      std::span<const std::int64_t> tiles, const std::shared_ptr<BatchPart>& before,
                                      const Take& take) {
  const std::lock_guard lock(mutex_);
  if (filling_ == nullptr) {
    auto filling = std::make_shared<Filling>();
    filling->batch = take();
    if (filling->batch == nullptr) return {};
    filling_ = std::move(filling);
  }
  Filling& filling = *filling_;
  const std::size_t count = std::min(tiles.size(), most_ - filling.taken);
  if (filling.members.empty() || filling.members.back().part != before) {
    auto part = std::make_shared<BatchPart>();
    part->batch = filling.batch;
    part->first = filling.taken;
    filling.members.push_back({images, network, std::move(part)});
  }
  const std::shared_ptr<BatchPart>& part = filling.members.back().part;
  part->tiles.insert(part->tiles.end(), tiles.begin(), tiles.begin() + static_cast<std::ptrdiff_t>(count));
  Places places = {filling_, part, filling.batch->pixels.get() + filling.taken * tile_bytes_, count};
  filling.taken += count;
  last_change_ = runtime::Clock::now();
  if (filling.taken == most_) {
    filling.closed = true;
    filling_.reset();
  }
  return places;
}

void BatchFiller::written(const Places& places) {
  {
    const std::lock_guard lock(mutex_);
    Filling& filling = *places.filling;
    filling.written += places.count;
    if (!filling.closed || filling.written < filling.taken) return;
  }
  send_(places.filling);
}

void BatchFiller::flush(runtime::Clock::duration unchanged) {
  std::shared_ptr<Filling> filling;
  {
    const std::lock_guard lock(mutex_);
    if (filling_ == nullptr || runtime::Clock::now() - last_change_ < unchanged) return;
    filling = std::move(filling_);
    filling->closed = true;
    // Else who writes the last of them sends it.
    if (filling->written < filling->taken) return;
  }
  send_(filling);
}

}  // namespace slidestream
