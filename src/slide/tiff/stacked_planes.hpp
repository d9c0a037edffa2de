#pragma once

#include <cstdint>
#include <span>

#include "slide/file.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// How many planes lie behind each other under one directory, as ImageJ writes stacks above 4 GB and tifffile with
/// `truncate`: as many as its description says, if the file has the bytes of the second one. Bytes that another
/// directory has are none of them. So are those behind a directory that lies behind the first plane.
/// \param others  directories that the file has; this one may be among them
std::uint64_t stacked_planes(const File& file, const RawTiff& raw, const RawDirectory& directory,
                             std::span<const RawDirectory> others);

/// \throws SlideError that says how many there are
[[noreturn]] void refuse_stacked_planes(const File& file, std::uint64_t planes);

}  // namespace slidestream
