#include "config/suggest.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "config/printable.hpp"

namespace slidestream {

namespace {
constexpr std::size_t longest_compared = 64;
// Of longer text so much of its beginning, and of its end, which says what to do.
constexpr std::size_t shown_begin = 200;
constexpr std::size_t shown_end = 100;

/// Whether a byte goes on with a character of UTF-8.
bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }
}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, longest_compared);
  b = b.substr(0, longest_compared);
  // Three rows of the usual table: a swap of neighbours looks two rows back.
  std::array<std::array<int, longest_compared + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& now = rows[i % 3];
    const auto& before = rows[(i + 2) % 3];
    const auto& two_before = rows[(i + 1) % 3];
    now[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int replaced = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({before[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], two_before[j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  const auto nearest = std::ranges::min_element(
      candidates, {}, [name](const std::string& candidate) { return edit_distance(name, candidate); });
  return nearest == candidates.end() ? std::string() : *nearest;
}

std::string did_you_mean(std::string_view meant) { return "; did you mean '" + one_line(meant) + "'?"; }

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = nearest_name(name, candidates);
  // Half of the letters is theirs at least; all options begin with dashes.
  const auto letters = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  const auto longest = static_cast<int>(std::max(letters(name).size(), letters(nearest).size()));
  if (2 * edit_distance(name, nearest) > longest) return {};
  return did_you_mean(nearest);
}

std::string one_line(std::string_view text) {
  if (text.size() <= shown_begin + shown_end) return printable(text, ' ');
  // Not within a character.
  std::size_t end = shown_begin;
  while (end > shown_begin - 4 && continues(text[end])) --end;
  std::size_t begin = text.size() - shown_end;
  while (begin < text.size() - shown_end + 4 && continues(text[begin])) ++begin;
  return printable(text.substr(0, end), ' ') + "..." + printable(text.substr(begin), ' ');
}

}  // namespace slidestream
