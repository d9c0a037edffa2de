#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sink/image_sink.hpp"

/// \file
/// The beginning of an OME-TIFF file: everything but its tiles.

namespace slidestream {

/// Where a level's tables lie in the file: of 64-bit numbers, a tile each, row by row. A table of one number lies in
/// the directory itself, and so once in each of the level's directories.
struct TileTables {
  std::vector<std::uint64_t> offsets;  ///< where each copy begins
  std::vector<std::uint64_t> lengths;  ///< likewise, of byte counts
  std::uint64_t placeholder_length = 0;
};

/// A file whose tiles are all the placeholder.
struct TiffHead {
  std::vector<std::byte> bytes;    ///< from the file's first byte on; tiles may follow
  std::vector<TileTables> levels;  ///< level 0 first
};

/// A tile that stands for all that aren't there yet, and what may be behind it when a reader takes a tile's length from
/// after, and its offset from before a change.
struct Placeholder {
  std::vector<std::byte> tile;
  std::vector<std::byte> behind;
};

/// Little-endian BigTIFF. The main chain holds level 0, then each other level; level 0's SubIFDs are directories of the
/// other levels once more, with the same tables: some readers look for levels in one place, some in the other.
/// \param tables  JPEGTables; empty: none.
TiffHead make_tiff_head(const PyramidLayout& layout, const ImageDescription& description, const ImageOptions& options,
                        const std::vector<std::byte>& tables, const Placeholder& placeholder);

}  // namespace slidestream
