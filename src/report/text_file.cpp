#include "report/text_file.hpp"

namespace slidestream::report {

std::string read_text_file(const std::string& path, FileOrigin origin) {
  constexpr std::size_t largest = std::size_t{256} << 20;
  return read_file(path, largest, origin);
}

}  // namespace slidestream::report
