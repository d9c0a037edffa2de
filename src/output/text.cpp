#include "output/text.hpp"

#include <algorithm>
#include <charconv>

#include "config/printable.hpp"

namespace slidestream {

std::string to_decimal(double value) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

std::string to_decimal(Int128 value) {
  const bool negative = value < 0;
  std::string digits;
  do {
    // Digit by digit from the signed value: the lowest has no positive counterpart.
    const int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (digit < 0 ? -digit : digit));
    value /= 10;
  } while (value != 0);
  if (negative) digits += '-';
  std::ranges::reverse(digits);
  return digits;
}

std::string to_hexadecimal(std::uint64_t value) {
  std::string digits(16, '0');
  for (auto digit = digits.rbegin(); value != 0; ++digit, value >>= 4) *digit = "0123456789abcdef"[value & 15];
  return digits;
}

std::string json_text(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length > 0) {
      valid += text.substr(0, length);
    } else {
      valid += "\\x" + to_hexadecimal(static_cast<unsigned char>(text.front())).substr(14);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return valid;
}

}  // namespace slidestream
