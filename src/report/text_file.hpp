#pragma once

#include <string>

namespace slidestream::report {

/// All of a regular file. \throws ConfigError naming it and the system's reason.
std::string read_text_file(const std::string& path);

}  // namespace slidestream::report
