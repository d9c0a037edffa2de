#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace slidestream {

/// UTF-8 of bytes that are UTF-16, up to its first NUL; none where they are something else. UTF-16 begins with a byte
/// order mark, which is left out, or with four characters of ASCII, in whose bytes each other one is 0. Half a pair of
/// surrogates becomes U+FFFD.
std::optional<std::string> text_of_utf16(std::span<const std::byte> bytes);

}  // namespace slidestream
