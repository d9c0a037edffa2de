// Any text is a configuration or a ConfigError of one line; what is written can be read back.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>

namespace {

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

void require_one_line(const slidestream::ConfigError& error) {
  const std::string_view text = error.what();
  require(!text.empty() && text.find_first_of("\r\n") == std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  slidestream::Config config;
  try {
    config = slidestream::parse_config(text, "fuzz.toml");
  } catch (const slidestream::ConfigError& error) {
    require_one_line(error);
    // Not a file; perhaps it is a setting.
    try {
      slidestream::apply_setting(config, text);
    } catch (const slidestream::ConfigError& setting_error) {
      require_one_line(setting_error);
      return 0;
    }
  }
  const std::string written = slidestream::to_toml(config);
  require(slidestream::to_toml(slidestream::parse_config(written, "written.toml")) == written);
  try {
    slidestream::validate(config);
  } catch (const slidestream::ConfigError& error) {
    require_one_line(error);
  }
  return 0;
}
