#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "slide/file.hpp"

/// \file
/// Slides that OpenSlide reads and no container here does: how they are recognised without it.

namespace slidestream::openslide {

struct Kind {
  const char* name;  ///< in messages
  bool is_tiff;      ///< by the file's first bytes
  /// How many focal planes a slide has; 0: it doesn't say. Null: not known of this kind.
  std::size_t (*focal_planes)(const File&) = nullptr;
};

/// What kind a file is, by its content; null: none that is known here. A damaged file is none.
const Kind* kind_of(std::span<const std::byte> first, const File& file);

/// The files of the slide that `path` is called by, first `path`: of MIRAX those of its folder, of VMS and VMU those
/// that it names. The others by name.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& path);

/// Whether a folder holds the data of the MIRAX slide beside it, and so no slides.
bool is_data_folder(const std::filesystem::path& folder);

}  // namespace slidestream::openslide
