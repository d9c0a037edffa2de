#include "config/toml_text.hpp"

#include <charconv>
#include <cmath>
#include <slidestream/error.hpp>
#include <type_traits>

#include "config/printable.hpp"
#include "config/suggest.hpp"

namespace slidestream {

namespace {

std::string toml_string(std::string_view text) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) throw ConfigError("'" + one_line(text) + "' isn't UTF-8 and can't be written as TOML");
    const auto c = static_cast<unsigned char>(text.front());
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text.front();
    } else if (const char32_t point = code_point(text, length); is_control(point)) {
      out += point < 0x10000 ? "\\u" : "\\U";
      for (int shift = point < 0x10000 ? 12 : 28; shift >= 0; shift -= 4) out += hex[point >> shift & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + '"';
}

std::string element(bool value) { return value ? "true" : "false"; }
std::string element(std::int64_t value) { return std::to_string(value); }
std::string element(double value) { return to_toml_number(value); }
std::string element(const std::string& value) { return toml_string(value); }

}  // namespace

std::string to_toml_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string to_toml_value(const ConfigValue& value) {
  return std::visit(
      [](const auto& held) {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_arithmetic_v<Held> || std::is_same_v<Held, std::string>) {
          return element(held);
        } else {
          std::string list;
          for (const auto& item : held) list += (list.empty() ? "" : ", ") + element(item);
          return "[" + list + "]";
        }
      },
      value);
}

std::string wrapped(std::string_view text, std::string_view prefix, std::size_t columns) {
  std::string out;
  std::string line(prefix);
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (line.size() > prefix.size() && line.size() + 1 + word.size() > columns) {
      out += line + '\n';
      line = prefix;
    }
    if (line.size() > prefix.size()) line += ' ';
    line += word;
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return out + line + '\n';
}

}  // namespace slidestream
