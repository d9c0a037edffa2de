#pragma once

/// \file
/// CIE 1976 L*a*b* backwards, white D50, and ICC's range of XYZ: for processors and GPUs.

namespace slidestream::lab {

inline constexpr float white[3] = {0.9642F, 1.0F, 0.8249F};
inline constexpr float limit = 24.0F / 116.0F;
inline constexpr float slope = 108.0F / 841.0F;
inline constexpr float offset = 16.0F / 116.0F;
inline constexpr float xyz_range = 1.0F + 32767.0F / 32768.0F;

}  // namespace slidestream::lab
