#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <slidestream/image.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// \file
/// Features of a slide's tiles as HDF5, in the layout that TRIDENT (https://github.com/mahmoodlab/TRIDENT) and CLAM
/// (https://github.com/mahmoodlab/CLAM) write and read.

namespace slidestream {

/// What such a file says of its tiles.
struct FeatureDescription {
  std::string name;                     ///< the slide's among results; no path
  std::string encoder;                  ///< file name of the model; no path
  std::int64_t length = 1;              ///< D: entries of a vector
  std::int64_t patch = 1;               ///< side of a tile, in its own pixels
  std::int64_t overlap = 0;             ///< pixels that neighbours share, of the same kind
  Size level0;                          ///< pixels of the slide
  std::int64_t level = 0;               ///< that tiles are made from
  double downsample = 1.0;              ///< pixels of level 0 along one of that level
  double reduction = 1.0;               ///< pixels of that level along one of a tile
  std::optional<double> magnification;  ///< of level 0, such as 40
  /// Those that decide the vectors, by name; no paths.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// A tile's top left corner, x and y in pixels of level 0.
using TileCorner = std::array<std::int64_t, 2>;

/// Writes `coords` (N x 2, int64) and `features` (N x D, float32) with their attributes, at a path where nothing is.
/// N may be 0. The same input gives the same bytes. A file that can't be written is taken away; what is there already
/// stays. \param vectors  N x D. \throws OutputError with the path.
void write_features(const std::filesystem::path& file, const FeatureDescription& description,
                    std::span<const TileCorner> corners, std::span<const float> vectors);

/// The same without `features`; the settings are attributes of `coords` then.
void write_coordinates(const std::filesystem::path& file, const FeatureDescription& description,
                       std::span<const TileCorner> corners);

/// Whether a file says that this program wrote it, and has no more groups, datasets and attributes of the whole than
/// this program gives it. False where it can't be read.
bool is_features_file(const std::filesystem::path& file) noexcept;

}  // namespace slidestream
