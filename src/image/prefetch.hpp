#pragma once

#include <cstddef>

/// \file
/// Rows of pixels lie far from each other: the processor doesn't foresee where the next one begins.

namespace slidestream {

/// Asks for bytes that are read or written soon.
inline void prefetch(const void* first, std::size_t bytes) noexcept {
  constexpr std::size_t line = 64;
  const auto* at = static_cast<const char*>(first);
  for (std::size_t i = 0; i < bytes; i += line) __builtin_prefetch(at + i);
}

}  // namespace slidestream
