#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "image/mask.hpp"

/// \file
/// Files about a mask. Each is written under its partial name (`partial_name`), synced and renamed; when that fails,
/// nothing is left. A run has them in a temporary folder (`publish_whole`). \throws OutputError naming the path and the
/// system's reason

namespace slidestream::operators {

/// Its outlines as GeoJSON (`geojson_of`).
void write_outlines(const Mask& mask, const std::filesystem::path& file, const std::optional<double>& mpp,
                    double simplify);

/// The mask as an OME-TIFF of labels, 0 and 1, one level.
/// \param name of the image
/// \param settings for its metadata, by name
/// \param figures the same
/// \param mpp micrometres per pixel of level 0 of the slide, where known
/// \param mpp_y the same down, where that is another size
void write_mask(const Mask& mask, const std::filesystem::path& file, const std::string& name,
                const std::vector<std::pair<std::string, std::string>>& settings,
                const std::vector<std::pair<std::string, std::string>>& figures, const std::optional<double>& mpp,
                const std::optional<double>& mpp_y = std::nullopt);

}  // namespace slidestream::operators
