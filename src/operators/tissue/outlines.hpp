#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "image/mask.hpp"

/// \file
/// Outlines of a mask.

namespace slidestream::operators {

/// A corner of mask pixels: the top left one of pixel (x, y).
struct Corner {
  std::int64_t x = 0;
  std::int64_t y = 0;

  friend constexpr bool operator==(const Corner&, const Corner&) = default;
};

/// A closed line along pixel edges, only the corners where it turns; the first one is not repeated.
using Ring = std::vector<Corner>;

/// Tissue whose pixels touch by their sides. Rings touch each other and themselves in no more than corners, and none
/// passes a corner twice: what the Simple Features standard calls a valid polygon.
struct Outline {
  Ring outer;               ///< clockwise as one sees the image (y downwards)
  std::vector<Ring> holes;  ///< the other way round
};

/// All outlines, in the order of their first pixels.
std::vector<Outline> find_outlines(const Mask& mask);

/// A GeoJSON FeatureCollection (RFC 7946) with a Feature for each outline, in pixels of level 0, as QuPath imports it:
/// annotations of class "Tissue". Coordinates are rounded to 1/1000 and end with the image.
std::string geojson_of(const Mask& mask);

}  // namespace slidestream::operators
