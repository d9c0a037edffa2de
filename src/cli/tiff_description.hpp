#pragma once

#include <filesystem>
#include <string>

namespace slidestream::cli {

/// The description of a TIFF's first image, up to 1 MiB; empty where there is none, or the file can't be read.
std::string tiff_description(const std::filesystem::path& file);

}  // namespace slidestream::cli
