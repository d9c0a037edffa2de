#pragma once

#include <cstddef>
#include <cstdint>

#include <slidestream/slide.hpp>

#include "planning/strip_plan.hpp"

/// \file
/// The tiles of a batch, and the reads that bring their bytes.

namespace slidestream {

/// One tile of a batch.
struct BatchTile {
  enum class Source { file, missing, outside_file, too_long };
  std::int64_t index = 0;  ///< in the level
  /// outside_file: the range isn't in the file; too_long: more bytes than the tile's pixels could need.
  Source source = Source::file;
  bool owned = true;       ///< false: a panel or fragment before this one counts it
  std::size_t offset = 0;  ///< of its bytes in the slot, the host's or the device's
  std::size_t length = 0;
  std::size_t front_offset = 0;  ///< in the host's slot, of its first bytes, as far as describing it takes them
  std::size_t front_length = 0;
  bool bad = false;         ///< it couldn't be decoded, and is taken as white
  std::int64_t from_x = 0;  ///< first pixel of the tile that is wanted
  std::int64_t from_y = 0;
  ByPlane<HostPixels> out;  ///< in the slot; without data where the batch is decoded on a device or nobody wants it
  ByPlane<std::int64_t> place{};  ///< in each plane, byte of the first pixel behind the batch's own first
};

/// One positional read: neighbouring tiles merged.
struct ReadChunk {
  std::uint64_t file_offset = 0;
  std::size_t slot_offset = 0;
  std::size_t length = 0;
  /// Whole blocks of the file that it lies in may be read: its place in the slot is as far into a block, and nothing
  /// else is in the slot's blocks.
  bool whole_blocks = false;
};

/// Consecutive chunks that a thread reads at a time.
struct ReadPart {
  std::size_t first = 0;  ///< chunk
  std::size_t end = 0;
  std::size_t first_tile = 0;  ///< of those that begin in it: place in the order of their bytes
  std::size_t end_tile = 0;
};

}  // namespace slidestream
