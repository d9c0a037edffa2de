#pragma once

#include <cstdint>
#include <optional>
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

/// Twice the area of a ring, above 0 when it goes clockwise as one sees the image.
std::int64_t doubled_area(const Ring& ring);

/// Tissue whose pixels touch by their sides. Rings touch each other and themselves in no more than corners, and none
/// passes a corner twice: what the Simple Features standard calls a valid polygon.
struct Outline {
  Ring outer;               ///< clockwise as one sees the image (y downwards)
  std::vector<Ring> holes;  ///< the other way round
  std::int64_t pixels = 0;  ///< of the mask, inside
  double covered = 0.0;     ///< pixels of level 0 inside, without what lies beyond the slide's edge
  std::size_t region = 0;   ///< number of the region that it is a part of: parts of one meet at corners
};

/// All outlines, in the order of their first pixels.
std::vector<Outline> find_outlines(const Mask& mask);

/// Corners of all outlines: of a mask as busy as no tissue is, they take gigabytes. Without finding the outlines.
std::int64_t count_corners(const Mask& mask);

/// How many of them `tissue` takes.
inline constexpr std::int64_t most_outline_corners = std::int64_t{1} << 21;

/// About what a mask and its outlines take while they are written, in bytes: the runs of pixels of each row, twice, and
/// corners with their text.
constexpr std::uint64_t writing_bytes(std::uint64_t pixels, std::uint64_t runs, std::uint64_t corners) noexcept {
  return pixels + 96 * runs + 400 * corners;
}

/// A GeoJSON FeatureCollection (RFC 7946) in pixels of level 0, as QuPath imports it: annotations of class "Tissue".
/// Each region, whose pixels touch by their sides or corners, is one Feature: a Polygon, or a MultiPolygon of parts
/// that meet at corners. Its measurements are the area inside the slide, in um^2 where the pixel size is known, and the
/// number of mask pixels, those at the edge whole. Coordinates are rounded to 1/1000 and end with the image.
/// \param mpp  micrometres per pixel of level 0, where known (`SlideInfo::mean_mpp`)
/// \param simplify  how far the lines may lie from the mask's, mask pixels (`simplify_outlines`); 0: not at all
std::string geojson_of(const Mask& mask, const std::optional<double>& mpp = std::nullopt, double simplify = 0.0);

}  // namespace slidestream::operators
