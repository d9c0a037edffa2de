#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "image/mask.hpp"

/// \file
/// A mask from somebody else's outlines.

namespace slidestream::operators {

/// A mask of this size from GeoJSON (RFC 7946) in pixels of level 0: Polygon and MultiPolygon, alone, as Feature, or in
/// a FeatureCollection, GeometryCollection or bare list. A mask pixel is tissue where its centre lies in a polygon, by
/// the even-odd rule over that polygon's rings (on a left or upper edge: inside); polygons add up. Features without a
/// geometry are passed over, and points and lines are ignored; what reaches beyond the slide is cut off. \param text
/// the JSON \param name stands before the cause in errors: the file's path \param ignored  gets the number of points
/// and lines \throws SlideError "NAME: cause" when it isn't that, has other geometries, or points and lines alone
Mask mask_from_geojson(std::string_view text, std::string_view name, Size size, GridScale scale, Size level0,
                       std::size_t* ignored = nullptr);

/// The same from a file of at most 256 MiB. \throws SlideError naming it when it can't be read
Mask read_geojson_mask(const std::filesystem::path& path, Size size, GridScale scale, Size level0,
                       std::size_t* ignored = nullptr);

}  // namespace slidestream::operators
