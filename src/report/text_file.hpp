#pragma once

#include <string>

#include "config/read_file.hpp"

namespace slidestream::report {

/// All of a regular file. \throws ConfigError naming it and the cause. \param origin  `own`: of a results folder
std::string read_text_file(const std::string& path, FileOrigin origin);

}  // namespace slidestream::report
