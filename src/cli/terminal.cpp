#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "config/printable.hpp"

namespace slidestream::cli {

namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool utf8_locale() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(variable)) continue;
    std::string value = std::getenv(variable);
    std::ranges::transform(value, value.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

bool begins_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::string scaled(double value, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000.0;
    ++unit;
  }
  const int decimals = value >= 100 || (unit == 0 && value == std::floor(value)) ? 0 : value >= 10 ? 1 : 2;
  return fixed(value, decimals) + " " + units[unit];
}

}  // namespace

Style Style::of(int descriptor) {
  const char* term = std::getenv("TERM");
  Style style;
  style.terminal = ::isatty(descriptor) == 1 && term != nullptr && std::string_view(term) != "dumb";
  style.colour = style.terminal && !is_set("NO_COLOR");
  style.unicode = utf8_locale();
  return style;
}

std::string Style::paint(std::string_view code, std::string_view text) const {
  if (!colour || text.empty()) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

int terminal_width(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_code_point));
}

std::string shortened_path(std::string_view path, std::size_t width, const Style& style) {
  std::string shown = printable(path);
  // Terminals show a byte that isn't UTF-8 in one column, in four, or not at all.
  for (std::size_t i = 0; i < shown.size();) {
    const std::size_t length = utf8_length(std::string_view(shown).substr(i));
    if (length == 0) shown[i] = '?';
    i += std::max<std::size_t>(length, 1);
  }
  if (display_width(shown) <= width) return shown;
  const std::string mark = style.unicode ? "\u2026" : "...";
  const std::size_t room = width - std::min(width, display_width(mark));
  std::size_t begin = 0;
  for (std::size_t kept = 0; begin < shown.size(); ++begin) {
    if (begins_code_point(shown[begin]) && kept++ == room / 2) break;
  }
  std::size_t end = shown.size();
  for (std::size_t kept = 0; kept < room - room / 2 && end > begin;) {
    if (begins_code_point(shown[--end])) ++kept;
  }
  return shown.substr(0, begin) + mark + shown.substr(end);
}

std::string fixed(double value, int decimals) {
  std::array<char, 64> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, value);
  return std::string(buffer.data(), std::min<std::size_t>(static_cast<std::size_t>(length), buffer.size() - 1));
}

std::string seconds_text(double seconds) { return seconds < 60 ? fixed(seconds, 2) + " s" : clock_text(seconds); }

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 3.6e9) + 0.5);
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const std::int64_t minutes = whole / 60;
  if (minutes < 60) return std::to_string(minutes) + ":" + two(whole % 60);
  return std::to_string(minutes / 60) + ":" + two(minutes % 60) + ":" + two(whole % 60);
}

std::string count_text(unsigned long long n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string count_of(unsigned long long n, const std::string& one) {
  return count_text(n) + " " + one + (n == 1 ? "" : "s");
}

std::string bytes_text(double bytes) { return scaled(bytes, {"B", "kB", "MB", "GB", "TB"}); }

std::string pixel_rate_text(double per_second) {
  if (per_second < 1e8) return fixed(per_second / 1e6, 1) + " Mpx/s";
  return fixed(per_second / 1e9, 2) + " Gpx/s";
}

std::string voxel_rate_text(double per_second) {
  return scaled(per_second, {"voxels/s", "kvoxels/s", "Mvoxels/s", "Gvoxels/s", "Tvoxels/s"});
}

}  // namespace slidestream::cli
