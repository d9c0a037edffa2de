#include "report/text_file.hpp"

#include "config/read_file.hpp"

namespace slidestream::report {

std::string read_text_file(const std::string& path) {
  constexpr std::size_t largest = std::size_t{256} << 20;
  return read_file(path, largest, FileOrigin::given);
}

}  // namespace slidestream::report
