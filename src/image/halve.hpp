#pragma once

#include <cstdint>

namespace slidestream {

/// Sums of 2 x 2 samples of two rows, and their means, half up: sums[x] = s, pixels[x] = (s + 2) >> 2, for pixels from
/// the left. Rows are interleaved, of 1 or 3 channels (of other numbers none is done).
/// \param pixels_wide  pixels of the result.
/// \return how many of them were done; the rest is the caller's.
std::int64_t halve(const std::uint8_t* upper, const std::uint8_t* lower, std::uint16_t* sums, std::uint8_t* pixels,
                   std::int64_t pixels_wide, int channels) noexcept;

}  // namespace slidestream
