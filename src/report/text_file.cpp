#include "report/text_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <slidestream/error.hpp>
#include <sstream>

namespace slidestream::report {

std::string read_text_file(const std::string& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  // A named pipe would wait for a writer.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw ConfigError(path + ": not a regular file");
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || in.bad()) throw ConfigError(path + ": " + std::strerror(errno != 0 ? errno : EIO));
  return std::move(text).str();
}

}  // namespace slidestream::report
