#pragma once

#include <cstddef>
#include <optional>
#include <span>

/// \file
/// The boxes of JP2 files (ISO/IEC 15444-1, annex I), as the decoders of the CPU and of GPUs must know them.

namespace slidestream {

/// What a JP2 file says of the codestream in it.
struct Jp2File {
  std::span<const std::byte> codestream;  ///< the first; empty: none
  bool has_palette = false;
  bool describes_channels = false;    ///< in a box of its own, or by how a palette is used
  bool reorders_channels = false;     ///< red, green and blue, or Y, Cb and Cr
  bool says_grey = false;             ///< of its colours
  bool says_ycbcr = false;            ///< likewise
  bool says_others = false;           ///< likewise: some that are neither grey nor sRGB
  const char* unsupported = nullptr;  ///< the first of its colours that nothing converts: "CMYK"
};

/// Whether `bytes` begin as a JP2 file does.
bool is_jp2_file(std::span<const std::byte> bytes) noexcept;

/// Reads the boxes of a JP2 file. What follows its codestream need not be one. \returns nothing where a box up to there
/// is cut, or one of the header is too short for what it begins to say.
std::optional<Jp2File> read_jp2_file(std::span<const std::byte> bytes) noexcept;

}  // namespace slidestream
