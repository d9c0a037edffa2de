#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <slidestream/config.hpp>
#include <slidestream/network.hpp>
#include <slidestream/slide.hpp>
#include <slidestream/stitch.hpp>

#include "planning/operator_needs.hpp"

/// \file
/// What a network's tiles of a slide come to: sizes and memory, from settings alone.

namespace slidestream {

struct NetworkPlan {
  std::int64_t factor = 65536;  ///< pixels of the level that a pixel of the tiles stands for, times 65,536
  bool on_devices = false;      ///< GPUs make pixels of that size; else the host does
  StitchPlan stitch;
  PixelFormat format;           ///< of the image, where the network gives one
  std::int64_t chunk_rows = 0;  ///< of the image that are made at a time
  std::size_t chunk_bytes = 0;  ///< of such rows
  std::uint64_t bytes = 0;      ///< host memory that the slide's tiles take: rows, tiles, and chunks

  /// Rows of the tiles' resolution that so many rows of the level, from the top, complete.
  std::int64_t rows_within(std::int64_t level_rows) const noexcept { return level_rows * 65536 / factor; }
  /// Micrometres a pixel of the image, from those of the level.
  double mpp(double level_mpp) const noexcept {
    return level_mpp * static_cast<double>(factor) / 65536.0 * static_cast<double>(stitch.scale);
  }
};

/// Chunks of an image that are made, encoded and written at a time, at most.
constexpr std::size_t network_chunks = 3;

/// Batches whose tiles a network's threads have, get, or have had.
constexpr std::size_t network_batches(std::size_t sessions) noexcept { return sessions + 2; }

/// Host memory of these, in bytes.
std::uint64_t network_batch_bytes(const Network& network);

/// Slides whose tiles are in memory at a time.
constexpr std::size_t network_slides(std::size_t lanes) noexcept { return lanes + 1; }

/// Where batches are shared: tiles of slides of fewer tiles than a batch that may be in memory besides, as they are in
/// batches.
std::int64_t network_tiles_aside(const Network& network, std::size_t lanes);

/// `stitch.edge` in effect.
StitchEdge edge_of(StitchEdge asked, const NetworkOutput& output);

/// \param mpp  micrometres a pixel of the level, where known. \param tile_rows  side of the tiles that the image is
/// written in. \param devices  the level's rows come from GPUs. \param asked_level  `input.level`, for messages.
/// \throws Error where the slide can't be cut as the network wants it, or that takes more memory than it may.
NetworkPlan plan_network(const Network& network, Size level, const std::optional<double>& mpp,
                         const StitchConfig& config, int tile_rows, bool devices = false, int asked_level = 0);

/// Checks what a network says of itself. \throws ConfigError.
void check_network(const Operator& op);

/// The level of a slide that a run works on: `input.level`; where nothing but a network that wants its tiles at a
/// resolution reads pixels, the coarsest from there on that is still finer. \throws Error where there is no such level.
std::size_t level_of(const Config& config, const Operators& operators, const SlideInfo& info);

/// Micrometres a pixel of a level, where known.
std::optional<double> mpp_of(const SlideInfo& info, std::size_t level);

}  // namespace slidestream
