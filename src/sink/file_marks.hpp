#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

/// \file
/// What files say of themselves.

namespace slidestream {

/// The description of a TIFF's first image, up to 1 MiB; empty where there is none, or the file can't be read.
std::string tiff_description(const std::filesystem::path& file);

/// The first bytes of a file; fewer where it ends or can't be read.
std::string first_bytes_of(const std::filesystem::path& file, std::size_t most);

/// Whether a text is among these bytes.
bool has_mark(const std::filesystem::path& file, std::string_view mark, std::size_t most = std::size_t{1} << 20);

bool is_empty_file(const std::filesystem::path& path);

}  // namespace slidestream
