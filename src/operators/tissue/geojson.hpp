#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "image/mask.hpp"

/// \file
/// A mask from somebody else's outlines.

namespace slidestream::operators {

/// What outlines say that doesn't count.
struct PassedOver {
  std::size_t flat = 0;     ///< points and lines
  std::size_t ignored = 0;  ///< features with polygons whose class is "Ignore*", QuPath's for regions to be ignored
  std::size_t planes = 0;   ///< geometries with polygons that count, though z or t of QuPath's "plane" isn't 0
};

/// Counts what was passed over, in a line; empty where that is nothing.
std::string text_of_passed_over(const PassedOver& passed_over);

/// A mask of this size from GeoJSON (RFC 7946) in pixels of level 0: Polygon and MultiPolygon, alone, as Feature, or in
/// a FeatureCollection, GeometryCollection or bare list. A mask pixel is tissue where its centre lies in a polygon: in
/// its first ring and in none of the others (on a left or upper edge: inside). A ring that crosses itself goes by the
/// even-odd rule. Polygons add up. Features without a geometry are passed over, and points, lines and features of
/// QuPath's class "Ignore*" are ignored; what reaches beyond the slide is cut off. \param text  the JSON \param name
/// stands before the cause in errors: the file's path \param passed_over  gets what was ignored \param given_up  asked
/// many times a second whether the slide is; may be empty \throws SlideError "NAME: cause" when it isn't that, has
/// other geometries, or nothing that counts; StoppedError when `given_up` says so
Mask mask_from_geojson(std::string_view text, std::string_view name, Size size, GridScale scale, Size level0,
                       PassedOver* passed_over = nullptr, const std::function<bool()>& given_up = {});

/// The same from a file of at most 256 MiB. \throws SlideError naming it when it can't be read
Mask read_geojson_mask(const std::filesystem::path& path, Size size, GridScale scale, Size level0,
                       PassedOver* passed_over = nullptr, const std::function<bool()>& given_up = {});

}  // namespace slidestream::operators
