#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// \file
/// Which of a file's images are levels of another, by their sizes.

namespace slidestream {

struct ImageSize {
  std::uint64_t width = 0;
  std::uint64_t height = 0;

  bool operator==(const ImageSize&) const = default;
};

/// Whether an image is smaller than another one and has its shape, but for 2 pixels or 2 %.
bool has_shape_of(const ImageSize& larger, const ImageSize& smaller);

/// Whether an image that a file calls a level can be one: of the larger one's shape, and along one axis 2, 3, ... times
/// smaller, but for 2 pixels or 2 %.
bool is_reduction(const ImageSize& larger, const ImageSize& smaller);

/// Whether an image that says nothing of itself has the size of a level: along both axes 2, 3, ... times smaller, but
/// for 2 pixels or 0.2 %.
bool has_size_of_level(const ImageSize& larger, const ImageSize& smaller);

/// Of images that say nothing of themselves those that make a pyramid below `base`, largest first: each has the size of
/// a level of the base and of the one before it. Of several such pyramids the one with the most levels, of equals that
/// with larger ones. Of images of one size the first counts.
std::vector<std::size_t> pyramid_below(const ImageSize& base, const std::vector<ImageSize>& images);

}  // namespace slidestream
