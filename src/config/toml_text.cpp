#include "config/toml_text.hpp"

#include <charconv>
#include <cmath>
#include <slidestream/error.hpp>
#include <type_traits>

#include "config/suggest.hpp"

namespace slidestream {

namespace {

/// Length of the UTF-8 sequence at the start of `text`; 0 when it isn't one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and beyond U+10FFFF.
  const unsigned char second = byte(1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f)) return 0;
  if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) return 0;
  return length;
}

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
    } else if (c < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += hex[c >> 4];
      out += hex[c & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return out + '"';
}

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
