#include "stages/forecast_networks.hpp"

#include <algorithm>
#include <functional>

#include <slidestream/error.hpp>

#include "image/pyramid_builder.hpp"
#include "operators/common/tile_grid.hpp"
#include "planning/network_plan.hpp"
#include "sink/image_formats.hpp"
#include "stages/network/network_admission.hpp"

namespace slidestream {

void NetworksForecast::add(const SlideInfo& info, std::size_t level_index, SlideForecast& slide) {
  OfSlide all;
  for (const auto& op : operators_) {
    if (op->network() == nullptr) continue;
    const auto product = image_of(*op);
    ImageOptions options;
    if (product) options = image_options(config_.image, product->format, product->labels);
    const Level& level = info.levels[level_index];
    operators::require_square_pixels(op->network()->tiles(), info, operators::names_of(*op->network()));
    const NetworkPlan plan = plan_network(*op->network(), {level.width, level.height}, mpp_of(info, level_index),
                                          config_.stitch, options.tile, on_gpus_, config_.input.level);
    all.bytes += plan.bytes;
    const std::int64_t tiles = plan.stitch.tiles();
    const std::int64_t batch = op->network()->tiles().batch;
    slide.network_tiles += tiles;
    slide.network_batches += (tiles + batch - 1) / batch;
    all.tiles += tiles;
    all.small |= tiles < batch;
    if (!product) continue;
    all.bytes += most_builder_bytes({plan.stitch.image, options.tile, options.levels}, product->format, plan.chunk_rows,
                                    static_cast<std::int64_t>(network_chunks));
  }
  slides_.push_back(all);
}

std::int64_t NetworksForecast::tiles_aside() const {
  std::int64_t tiles = 0;
  for (const auto& op : operators_) {
    if (op->network() != nullptr) tiles += network_tiles_aside(*op->network(), lanes_);
  }
  return tiles;
}

void NetworksForecast::finish(RunForecast& forecast) {
  NetworkForecast& all = forecast.network;
  all.bands_bytes = bands_bytes();
  for (const auto& op : operators_) {
    if (op->network() != nullptr) add_network(all, *op->network());
  }
  if (all.sessions > 0) all.session_bytes /= all.sessions;
  forecast.networks_bytes = all.bands_bytes + all.batches_bytes + all.weights_bytes + all.sessions * all.session_bytes;
}

/// Counts the largest slides, as many as are admitted at a time, and small ones that wait besides.
std::uint64_t NetworksForecast::bands_bytes() {
  std::ranges::sort(slides_, std::greater{}, &OfSlide::bytes);
  std::int64_t aside = tiles_aside();
  std::size_t places = network_slides(lanes_) + (aside > 0 ? NetworkAdmission::most_large_aside : 0);
  std::uint64_t sum = 0;
  for (const OfSlide& slide : slides_) {
    if (places > 0) {
      --places;
    } else if (slide.small && slide.tiles <= aside) {
      aside -= slide.tiles;
    } else {
      continue;
    }
    sum += slide.bytes;
  }
  return sum;
}

void NetworksForecast::add_network(NetworkForecast& all, const Network& network) const {
  if (all.description.empty()) {
    all.description = network.description();
    all.side = network.tiles().side;
    all.batch = network.tiles().batch;
  }
  all.tissue_only |= network.tiles().tissue_only;
  all.mixed |= network.tiles().mixed;
  const std::size_t sessions = static_cast<std::size_t>(network.sessions()) * lanes_;
  all.sessions += sessions;
  // If a shared batch fails, its session divides it, and takes another batch for the parts.
  const std::size_t parts = network.tiles().mixed ? sessions : 0;
  all.batches_bytes += (network_batches(sessions) + parts) * network_batch_bytes(network);
  try {
    const NetworkMemory memory = network.memory();
    all.weights_bytes += memory.weights;
    all.session_bytes += sessions * memory.session;
    all.device_bytes += memory.device;
  } catch (const Error& error) {
    all.unknown = error.what();
  }
}

}  // namespace slidestream
