// Any text is a configuration or a ConfigError of one line; what is written can be read back.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>

namespace {

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

/// What `work` returns, or nothing after an error that is as it should be.
template <class Work>
auto attempt(Work&& work) -> std::optional<decltype(work())> {
  try {
    return work();
  } catch (const slidestream::ConfigError& error) {
    const std::string_view text = error.what();
    require(!text.empty() && text.find_first_of("\r\n") == std::string_view::npos);
    return std::nullopt;
  }
}

void require_same_when_read_back(const std::string& written) {
  require(slidestream::to_toml(slidestream::parse_config(written, "written.toml")) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto config = attempt([&] { return slidestream::parse_config(text, "fuzz.toml"); })) {
    require_same_when_read_back(slidestream::to_toml(*config));
    attempt([&] { return slidestream::validate(*config), true; });
    return 0;
  }
  // Not a file; perhaps it is a setting. Its paths may have bytes that no TOML can hold.
  slidestream::Config config;
  if (attempt([&] { return slidestream::apply_setting(config, text), true; })) {
    if (const auto written = attempt([&] { return slidestream::to_toml(config); })) {
      require_same_when_read_back(*written);
    }
  }
  return 0;
}
