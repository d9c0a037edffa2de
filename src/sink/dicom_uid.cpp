#include "sink/dicom_uid.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace slidestream {

namespace {

constexpr std::size_t longest_uid = 64;
constexpr std::size_t uuid_digits = 39;  // of a number from 2^127 on

/// The last `digits` decimal digits of a number, whose first one isn't 0.
std::string decimal(std::array<std::uint8_t, 16> number, std::size_t digits) {
  std::string text(digits, '0');
  for (std::size_t i = digits; i-- > 0;) {
    unsigned rest = 0;
    for (std::uint8_t& byte : number) {
      const unsigned value = rest << 8 | byte;
      byte = static_cast<std::uint8_t>(value / 10);
      rest = value % 10;
    }
    text[i] = static_cast<char>('0' + rest);
  }
  if (text.front() == '0') text.front() = '1';
  return text;
}

}  // namespace

DicomHash::DicomHash() {
  constexpr std::string_view own = "slidestream's second hash of 128";
  static_assert(own.size() == 32);
  second_.add(std::as_bytes(std::span(own)));
}

void DicomHash::add(std::span<const std::byte> bytes) noexcept {
  first_.add(bytes);
  second_.add(bytes);
}

std::array<std::uint64_t, 2> DicomHash::value() const noexcept { return {first_.value(), second_.value()}; }

std::string DicomHash::hexadecimal() const {
  char text[17];
  std::snprintf(text, sizeof text, "%016llX", static_cast<unsigned long long>(first_.value()));
  return text;
}

std::string dicom_uid(const std::string& root, const DicomHash& content, std::string_view role) {
  DicomHash hash = content;
  hash.add(std::as_bytes(std::span(role)));
  const std::array<std::uint64_t, 2> value = hash.value();
  std::array<std::uint8_t, 16> number{};
  std::memcpy(number.data(), value.data(), number.size());
  // RFC 9562: version 8, the usual variant. The highest bit makes all of them equally long.
  number[0] |= 0x80;
  number[6] = static_cast<std::uint8_t>((number[6] & 0x0F) | 0x80);
  number[8] = static_cast<std::uint8_t>((number[8] & 0x3F) | 0x80);
  const std::string begin = (root.empty() ? "2.25" : root) + ".";
  return begin + decimal(number, std::min(uuid_digits, longest_uid - begin.size()));
}

}  // namespace slidestream
