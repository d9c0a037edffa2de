#include "slide/tiff/utf16_text.hpp"

#include "config/printable.hpp"

namespace slidestream {
namespace {

constexpr char32_t byte_order_mark = 0xFEFF;
constexpr char32_t replacement = 0xFFFD;

/// Units of 16 bits in one order of bytes. What is behind the last whole one isn't read.
struct Units {
  std::span<const std::byte> bytes;
  bool big_endian = false;

  std::size_t size() const { return bytes.size() / 2; }
  char32_t at(std::size_t i) const {
    const auto first = std::to_integer<char32_t>(bytes[2 * i]);
    const auto second = std::to_integer<char32_t>(bytes[2 * i + 1]);
    return big_endian ? first << 8 | second : second << 8 | first;
  }
};

bool has_mark(const Units& units) { return units.size() > 0 && units.at(0) == byte_order_mark; }

bool is_utf16(const Units& units) {
  constexpr std::size_t looked_at = 4;
  if (has_mark(units)) return true;
  if (units.size() < looked_at) return false;
  for (std::size_t i = 0; i < looked_at; ++i) {
    if (units.at(i) == 0 || units.at(i) > 0x7F) return false;
  }
  return true;
}

bool is_high_surrogate(char32_t unit) { return unit >= 0xD800 && unit <= 0xDBFF; }
bool is_low_surrogate(char32_t unit) { return unit >= 0xDC00 && unit <= 0xDFFF; }

std::string utf8_of(const Units& units) {
  std::string text;
  for (std::size_t i = has_mark(units) ? 1 : 0; i < units.size() && units.at(i) != 0; ++i) {
    const char32_t unit = units.at(i);
    if (is_high_surrogate(unit) && i + 1 < units.size() && is_low_surrogate(units.at(i + 1))) {
      append_utf8(text, 0x10000 + ((unit - 0xD800) << 10) + (units.at(++i) - 0xDC00));
    } else {
      append_utf8(text, is_high_surrogate(unit) || is_low_surrogate(unit) ? replacement : unit);
    }
  }
  return text;
}

}  // namespace

std::optional<std::string> text_of_utf16(std::span<const std::byte> bytes) {
  for (const bool big_endian : {false, true}) {
    const Units units{bytes, big_endian};
    if (is_utf16(units)) return utf8_of(units);
  }
  return std::nullopt;
}

}  // namespace slidestream
