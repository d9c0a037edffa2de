#include "config/positive_number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

namespace slidestream {

namespace {

constexpr std::size_t longest_number = 64;

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view around = " \t\r\n";
  const std::size_t first = text.find_first_not_of(around);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(around) - first + 1);
}

std::optional<double> positive_number(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.size() > longest_number || text.front() == '+' || text.front() == '-') return std::nullopt;
  std::array<char, longest_number> plain{};
  const auto end_of_text = std::ranges::copy(text, plain.begin()).out;
  // With a point, too, it groups thousands, and which is which isn't known.
  const bool has_point = text.find('.') != std::string_view::npos;
  if (!has_point && std::count(text.begin(), text.end(), ',') == 1) std::replace(plain.begin(), end_of_text, ',', '.');
  double value = 0.0;
  const char* const last = plain.data() + text.size();
  const auto [end, error] = std::from_chars(plain.data(), last, value);
  if (error != std::errc() || end != last || !std::isfinite(value) || value <= 0.0) return std::nullopt;
  return value;
}

}  // namespace slidestream
