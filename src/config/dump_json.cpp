#include "config/dump_json.hpp"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/printable.hpp"

namespace slidestream {

namespace {

void append_unit(std::string& to, char32_t unit) {
  to += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) to += "0123456789abcdef"[unit >> shift & 15U];
}

/// Beyond U+FFFF as two surrogates.
void append_escaped(std::string& to, char32_t point) {
  if (point < 0x10000) return append_unit(to, point);
  append_unit(to, 0xd800 + ((point - 0x10000) >> 10));
  append_unit(to, 0xdc00 + ((point - 0x10000) & 0x3ff));
}

template <class Json>
std::string dumped(const Json& json, int indent) {
  const std::string text = json.dump(indent, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  // The library escapes C0 controls itself, and its own line breaks stay. All beyond ASCII lies in strings.
  for (std::string_view rest = text; !rest.empty();) {
    const auto beyond = std::ranges::find_if(rest, [](char c) { return static_cast<unsigned char>(c) >= 0x7f; });
    const auto ascii = static_cast<std::size_t>(beyond - rest.begin());
    safe += rest.substr(0, ascii);
    rest.remove_prefix(ascii);
    if (rest.empty()) break;
    const std::size_t length = utf8_length(rest);
    const char32_t point = code_point(rest, length);
    if (is_control(point)) {
      append_escaped(safe, point);
    } else {
      safe += rest.substr(0, length);
    }
    rest.remove_prefix(length);
  }
  return safe;
}

}  // namespace

std::string dump_json(const nlohmann::ordered_json& json, int indent) { return dumped(json, indent); }

std::string dump_json(const nlohmann::json& json, int indent) { return dumped(json, indent); }

}  // namespace slidestream
