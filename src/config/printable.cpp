#include "config/printable.hpp"

namespace slidestream {

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

char32_t code_point(std::string_view text, std::size_t length) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (length == 1) return lead;
  auto point = static_cast<char32_t>(lead & (0x7f >> length));
  for (std::size_t i = 1; i < length; ++i) point = point << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  return point;
}

void append_utf8(std::string& to, char32_t point) {
  const auto rest = [&](int shift) { to += static_cast<char>(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) {
    to += static_cast<char>(point);
  } else if (point < 0x800) {
    to += static_cast<char>(0xc0 | point >> 6);
    rest(0);
  } else if (point < 0x10000) {
    to += static_cast<char>(0xe0 | point >> 12);
    rest(6);
    rest(0);
  } else {
    to += static_cast<char>(0xf0 | point >> 18);
    rest(12);
    rest(6);
    rest(0);
  }
}

bool is_control(char32_t point) {
  if (point < 0x20 || (point >= 0x7f && point <= 0x9f)) return true;
  // Arabic letter mark, marks of direction, separators with embeddings and overrides, isolates.
  return point == 0x61c || point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

std::string printable(std::string_view text, char instead) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text.front());
    const bool control = length == 0 ? first >= 0x80 && first <= 0x9f : is_control(code_point(text, length));
    const std::size_t taken = length == 0 ? 1 : length;
    if (control) {
      shown += instead;
    } else {
      shown += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  return shown;
}

}  // namespace slidestream
