#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "image/mask.hpp"

/// \file
/// A tissue mask from outlines that another program, such as QuPath, wrote.

namespace slidestream::operators {

/// What the user is told about the outlines: how many are left out, and how many count despite their plane.
struct PassedOver {
  std::size_t flat = 0;     ///< geometries of points or lines: they have no area
  std::size_t ignored = 0;  ///< features with polygons of QuPath's class "Ignore*": they are left out
  std::size_t planes = 0;   ///< geometries that count as tissue although z or t of QuPath's "plane" isn't 0
};

/// These counts as a line of text; empty if all are 0.
std::string text_of_passed_over(const PassedOver& passed_over);

/// Makes a mask of this size from GeoJSON (RFC 7946) in pixels of level 0. Only tests call it; runs call
/// `read_geojson_mask`.
///
/// Tissue is Polygon and MultiPolygon: alone, as Feature, or in a FeatureCollection, GeometryCollection or bare list.
/// A mask pixel is tissue if its centre lies in any polygon: in its first ring and in none of its other rings. A centre
/// on a left or upper edge is inside. The even-odd rule holds for a ring that crosses itself. Features whose geometry
/// is null are skipped. Points, lines and features of QuPath's class "Ignore*" don't count. What reaches beyond the
/// slide is cut off.
///
/// \param text  the JSON
/// \param name  the file's path, for errors
/// \param passed_over  gets the counts; may be null
/// \param given_up  asked many times a second whether the slide was given up; may be empty
/// \throws SlideError "NAME: not usable as tissue outlines: CAUSE". The cause is text that isn't such GeoJSON, another
///   geometry, no polygon that counts, or more positions or pixels than the limits
/// \throws StoppedError if `given_up` says so
Mask mask_from_geojson(std::string_view text, std::string_view name, Size size, GridScale scale, Size level0,
                       PassedOver* passed_over = nullptr, const std::function<bool()>& given_up = {});

/// The same from a file. \throws SlideError, StoppedError as above; SlideError "PATH: CAUSE" if the path isn't a
/// regular file, can't be read, or has more than 256 MiB
Mask read_geojson_mask(const std::filesystem::path& path, Size size, GridScale scale, Size level0,
                       PassedOver* passed_over = nullptr, const std::function<bool()>& given_up = {});

}  // namespace slidestream::operators
