#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace slidestream {

/// Who says which file is read.
enum class FileOrigin {
  given,          ///< the user names it: links are followed
  given_or_pipe,  ///< the same, and the shell's pipes below /dev and /proc are read to their end
  own,            ///< this program writes it among its results: a link in its place is refused
};

/// The whole file as text. A file that is no regular one isn't waited for, and one of more than `largest` bytes isn't
/// read. \throws ConfigError that names the file and the cause. \param look  called with each piece before the next is
/// read; what it throws ends the reading. May be empty
std::string read_file(const std::filesystem::path& file, std::size_t largest, FileOrigin origin,
                      const std::function<void(std::string_view)>& look = {});

}  // namespace slidestream
