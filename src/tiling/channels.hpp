#pragma once

#include <cstdint>

namespace slidestream {

/// Puts the red, green and blue of `count` interleaved pixels apart. Host memory; the four don't overlap.
void split_channels(std::uint8_t* red, std::uint8_t* green, std::uint8_t* blue, const std::uint8_t* rgb,
                    std::int64_t count) noexcept;

}  // namespace slidestream
