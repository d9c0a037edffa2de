#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <span>

namespace slidestream {

/// Makes a file of these parts, one behind the other, where nothing is, not even a link. One that can't be written
/// whole is taken away. \throws OutputError with the path.
void write_new_file(const std::filesystem::path& path, std::initializer_list<std::span<const std::byte>> parts);

}  // namespace slidestream
