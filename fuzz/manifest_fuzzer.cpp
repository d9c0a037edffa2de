// Any bytes are a manifest or a ConfigError of one line, and no line of it is lost or made up.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/manifest.hpp"

namespace {

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

void check(const std::vector<slidestream::ManifestLine>& lines, std::string_view text) {
  std::size_t last = 0;
  for (const slidestream::ManifestLine& line : lines) {
    require(line.line >= last && line.line > 0 && line.path.size() <= text.size());
    last = line.line;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = slidestream::list_entries(text);
  check(lines, text);
  for (const slidestream::ManifestLine& line : lines) {
    require(!line.path.empty() && line.path.find('\n') == std::string::npos &&
            text.find(line.path) != std::string::npos);
  }
  try {
    std::vector<std::string> warnings;
    const auto is_slide = [](const std::string& cell) { return cell.ends_with(".svs"); };
    check(slidestream::csv_entries(text, "fuzz.csv", is_slide, warnings), text);
  } catch (const slidestream::ConfigError& error) {
    const std::string_view message = error.what();
    require(!message.empty() && message.find_first_of("\r\n") == std::string_view::npos);
  }
  return 0;
}
