#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <slidestream/image.hpp>
#include <span>
#include <string>
#include <vector>

#include "sink/partial_file.hpp"

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
};

/// `features/NAME.h5` on its way: `coords` (N x 2, int64: x, y of a tile's top left corner in pixels of level 0) and
/// `features` (N x D, float32), with attributes. N may be 0. The same input gives the same bytes. The file has its
/// partial name until it is published, and is locked by whoever writes it.
class FeatureFile {
 public:
  /// A tile's corner, in pixels of level 0.
  using Corner = std::array<std::int64_t, 2>;

  /// Begins the file with everything but the features. \throws OutputError with the partial file's name; Error as
  /// `PartialFile`.
  FeatureFile(const std::filesystem::path& file, const FeatureDescription& description,
              std::span<const Corner> corners);
  /// Removes it, where it wasn't published.
  ~FeatureFile();
  FeatureFile(const FeatureFile&) = delete;
  FeatureFile& operator=(const FeatureFile&) = delete;

  /// The vectors of tiles from number `first` on, one behind the other; each tile once, in any order, one thread at a
  /// time. \throws Error where an entry isn't a number, naming the tile's corner; OutputError.
  void put(std::int64_t first, std::span<const float> vectors);

  /// Makes the file durable and gives it its name. \throws OutputError; Error when vectors are missing.
  void publish();

  std::int64_t missing() const noexcept { return missing_; }  ///< vectors that weren't put yet

 private:
  std::vector<Corner> corners_;
  std::int64_t length_;
  std::int64_t missing_;
  PartialFile partial_;
  std::uint64_t offset_ = 0;  ///< of the features, in the file
};

}  // namespace slidestream
