#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <slidestream/forecast.hpp>
#include <slidestream/slide.hpp>

#include "planning/operator_needs.hpp"

namespace slidestream {

/// Adds up the host memory of a run's networks, slide by slide. The forecast owns it; one thread at a time.
class NetworksForecast {
 public:
  /// \param operators  those that read pixels; they and the configuration outlive this object.
  NetworksForecast(const Config& config, const Operators& operators, std::size_t lanes, bool on_gpus)
      : config_(config), operators_(operators), lanes_(lanes), on_gpus_(on_gpus) {}

  /// Adds a slide, and enters its tiles and batches into `slide`. \throws Error where a network can't take the slide.
  void add(const SlideInfo& info, std::size_t level_index, SlideForecast& slide);

  /// Tiles of small slides that are in memory besides those of admitted slides.
  std::int64_t tiles_aside() const;

  /// Enters the memory of all networks, when all slides were added.
  void finish(RunForecast& forecast);

 private:
  /// What networks keep of a slide.
  struct OfSlide {
    std::uint64_t bytes = 0;
    std::int64_t tiles = 0;
    bool small = false;  ///< these are fewer than a batch
  };

  std::uint64_t bands_bytes();
  void add_network(NetworkForecast& all, const Network& network) const;

  const Config& config_;
  const Operators& operators_;
  std::size_t lanes_;
  bool on_gpus_;
  std::vector<OfSlide> slides_;
};

}  // namespace slidestream
