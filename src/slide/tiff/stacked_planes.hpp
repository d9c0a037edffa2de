#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "slide/file.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

struct StackedPlanes {
  std::uint64_t count = 1;
  std::string said_by;  ///< the tag that says so, for a message; empty: the description
};

/// How many planes lie behind each other under one directory: as many as MetaMorph's or NIH Image's tag says, or as the
/// description does, which ImageJ writes for stacks above 4 GB and tifffile with `truncate`. Uncompressed planes must
/// have the bytes of the second one. Bytes that another directory has are none of them. So are those behind a directory
/// that lies behind the first plane.
/// \param others  directories that the file has; this one may be among them
StackedPlanes stacked_planes(const File& file, const RawTiff& raw, const RawDirectory& directory,
                             std::span<const RawDirectory> others);

/// \throws SlideError that says how many there are
[[noreturn]] void refuse_stacked_planes(const File& file, const StackedPlanes& planes);

/// A line about a Zeiss LSM file whose tag says more than what is read of it; empty: nothing.
/// \param planes  directories of the slide's size  \param is_rgb  whether its samples are read as red, green and blue
std::string line_of_lsm(const File& file, const RawDirectory& directory, std::uint64_t planes, bool is_rgb);

}  // namespace slidestream
