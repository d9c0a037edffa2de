#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "slide/test_tiff.hpp"

/// \file
/// JPEG tiles of three components with what may say which colours those are.

namespace slidestream::test {

inline Bytes bytes_of(std::string_view text) {
  Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

/// A JPEG with a segment behind its SOI.
inline Bytes with_segment(Bytes jpeg, const Bytes& segment) {
  jpeg.insert(jpeg.begin() + 2, segment.begin(), segment.end());
  return jpeg;
}

inline Bytes with_jfif(const Bytes& jpeg) {
  return with_segment(jpeg, bytes_of({"\xFF\xE0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0", 18}));
}

inline Bytes with_adobe(const Bytes& jpeg, int transform) {
  Bytes segment =
      bytes_of({"\xFF\xEE\0\x0E"
                "Adobe\0\x64\0\0\0\0",
                15});
  segment.push_back(static_cast<std::byte>(transform));
  return with_segment(jpeg, segment);
}

/// The place of a marker's first byte.
inline std::ptrdiff_t place_of(const Bytes& jpeg, unsigned marker) {
  const std::array<std::byte, 2> wanted = {std::byte{0xFF}, static_cast<std::byte>(marker)};
  return std::search(jpeg.begin(), jpeg.end(), wanted.begin(), wanted.end()) - jpeg.begin();
}

/// Components of a baseline JPEG by other identifiers.
inline Bytes with_identifiers(Bytes jpeg, std::string_view identifiers) {
  const std::ptrdiff_t frame = place_of(jpeg, 0xC0), scan = place_of(jpeg, 0xDA);
  for (std::size_t i = 0; i < identifiers.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    jpeg[static_cast<std::size_t>(frame + 10 + 3 * at)] = static_cast<std::byte>(identifiers[i]);
    jpeg[static_cast<std::size_t>(scan + 5 + 2 * at)] = static_cast<std::byte>(identifiers[i]);
  }
  return jpeg;
}

/// Components of a baseline JPEG by other numbers of quantisation tables, which it must have.
inline Bytes with_tables(Bytes jpeg, const std::array<int, 3>& numbers) {
  const std::ptrdiff_t frame = place_of(jpeg, 0xC0);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    jpeg[static_cast<std::size_t>(frame) + 12 + 3 * i] = static_cast<std::byte>(numbers[i]);
  }
  return jpeg;
}

}  // namespace slidestream::test
