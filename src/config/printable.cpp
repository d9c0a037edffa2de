#include "config/printable.hpp"

#include <algorithm>
#include <array>

namespace slidestream {

namespace {

struct PointRange {
  char32_t first;
  char32_t last;
};

/// In order: Unicode's category Cf (format), code points that are shown as nothing (Default_Ignorable_Code_Point), and
/// separators of lines and paragraphs.
constexpr auto hidden_points = std::to_array<PointRange>({
    {0xad, 0xad},        // soft hyphen
    {0x34f, 0x34f},      // grapheme joiner
    {0x600, 0x605},      // Arabic number marks
    {0x61c, 0x61c},      // Arabic letter mark
    {0x6dd, 0x6dd},      // Arabic end of a verse
    {0x70f, 0x70f},      // Syriac abbreviation mark
    {0x890, 0x891},      // Arabic currency marks
    {0x8e2, 0x8e2},      // Arabic disputed end of a verse
    {0x115f, 0x1160},    // Hangul fillers
    {0x17b4, 0x17b5},    // Khmer inherent vowels
    {0x180b, 0x180f},    // Mongolian variation selectors and vowel separator
    {0x200b, 0x200f},    // of no width, joiners, marks of direction
    {0x2028, 0x202e},    // separators, embeddings and overrides
    {0x2060, 0x206f},    // word joiner, invisible operators, isolates
    {0x3164, 0x3164},    // Hangul filler
    {0xfe00, 0xfe0f},    // variation selectors
    {0xfeff, 0xfeff},    // byte order mark
    {0xffa0, 0xffa0},    // half-width Hangul filler
    {0xfff0, 0xfffb},    // unassigned, interlinear annotation
    {0x110bd, 0x110bd},  // Kaithi number mark
    {0x110cd, 0x110cd},  // Kaithi number mark above
    {0x13430, 0x1343f},  // joiners of hieroglyphs
    {0x1bca0, 0x1bca3},  // marks of shorthand
    {0x1d173, 0x1d17a},  // marks of musical notation
    {0xe0000, 0xe0fff},  // tags, more variation selectors
});

}  // namespace

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
  if (point < 0xad) return false;
  const auto* const range =
      std::ranges::find_if(hidden_points, [point](const PointRange& each) { return point <= each.last; });
  return range != hidden_points.end() && point >= range->first;
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
