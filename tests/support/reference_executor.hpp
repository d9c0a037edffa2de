#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>
#include <slidestream/slide.hpp>

#include "support/engine_runs.hpp"
#include "support/plain_pyramid.hpp"
#include "support/reference.hpp"

/// \file
/// What a run makes of a slide, the plain way: the whole level in memory, one thread, no strips, no device; operators
/// and pyramids straight from their definitions. What the pipeline is compared with.

namespace slidestream::test {

/// An image product.
struct ReferenceImage {
  std::string maker;               ///< name of the operator
  std::vector<WholeImage> levels;  ///< the image itself first
};

/// The spectrum of the whole level.
struct ReferenceSpectrum {
  ReferenceResult exact;  ///< in double precision: what any backend must come near
  Outcome host;           ///< of the host's engine over all windows in one go: what the CPU must give to the bit
};

struct ReferenceSlide {
  std::string failed_stage;                 ///< empty: the slide is done
  std::string lacking_stage;                ///< the first operator that failed on a slide that is done; empty: none
  std::optional<std::int64_t> failed_tile;  ///< the first of `bad_tiles`, where the slide fails with it
  std::string cause;                        ///< of a failure that isn't a tile's, without the slide's path
  std::int64_t width = 0;                   ///< of the level, pixels
  std::int64_t height = 0;
  std::optional<double> mpp;  ///< micrometres a pixel of the level
  std::uint64_t missing_tiles = 0;
  std::vector<std::int64_t> bad_tiles;  ///< those that can't be decoded, in order
  std::uint64_t missing_as_glass = 0;   ///< of the level that tissue is found on, where it isn't among those above
  std::uint64_t bad_as_glass = 0;       ///< likewise
  std::vector<ReferenceImage> images;   ///< in the order of `operators.run`
  std::optional<ReferenceSpectrum> spectrum;
};

/// Computes the operators of a configuration over one slide. Memory: all of the level and of the images that are made
/// of it, several times over. \throws SlideError when it can't be opened.
ReferenceSlide reference_slide(const Config& config, const std::filesystem::path& path);

}  // namespace slidestream::test
