#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace slidestream {

/// What the headers of a JPEG 2000 codestream say, read before a decoder allocates anything by them.
struct Codestream {
  struct Component {
    int precision = 8;  ///< bits
    bool is_signed = false;
    std::uint32_t dx = 1;  ///< image columns a sample
    std::uint32_t dy = 1;  ///< image rows a sample
  };

  std::span<const std::byte> bytes;  ///< the codestream alone, without JP2's boxes
  std::uint32_t x0 = 0;              ///< of the image on the reference grid
  std::uint32_t y0 = 0;
  std::uint32_t width = 0;  ///< of the image, pixels
  std::uint32_t height = 0;
  std::vector<Component> components;
  bool irreversible_colour_transform = false;  ///< components 0 to 2 are Y, Cb and Cr
  bool jp2_says_ycbcr = false;                 ///< so is what the JP2 file calls its colours
  bool jp2_says_grey = false;
  std::uint64_t work_bytes = 0;   ///< about what a decoder takes for tiles, precincts, code-blocks, layers and segments
  bool colour_transform = false;  ///< of components 0 to 2, of either kind, in some tile
  bool is_reversible = false;     ///< the wavelet, and with it a colour transform, by the last COD that was read

  /// Whether components 0 to 2 are there and have different sampling.
  bool sampled_apart() const noexcept {
    const auto differs = [this](std::size_t i) {
      return components[i].dx != components[0].dx || components[i].dy != components[0].dy;
    };
    return components.size() >= 3 && (differs(1) || differs(2));
  }
  /// Whether components 0 to 2 are Y, Cb and Cr, whatever the slide says.
  bool ycbcr_is_coded() const noexcept { return jp2_says_ycbcr || (sampled_apart() && !colour_transform); }
};

/// Precincts, and code-blocks, of all components that a codestream may have: a decoder allocates one to two KiB for
/// each before it decodes any, so a few bytes could ask for gigabytes.
constexpr std::uint64_t most_codestream_precincts = std::uint64_t{1} << 16;
constexpr std::uint64_t most_codestream_blocks = std::uint64_t{1} << 18;

/// Finds the codestream in `bytes` (bare, or in a JP2 file, told by the first bytes), reads its main header and walks
/// its tile-parts. \throws TileError for damage and for ends cut off, which OpenJPEG may pass over, for more parts than
///   the limits above, for markers that OpenJPEG doesn't know or that are of part 2, for fewer steps of
///   quantisation than bands, for a colour transform of components of different sizes, for HTJ2K whose packets have
///   markers in them, beside other code-blocks or in several layers, and for JP2 files whose components aren't the
///   colours (palette, reordered channels).
Codestream parse_codestream(std::span<const std::byte> bytes);

/// What the main header and that of the first tile-part say of a bare codestream, of which only the front is there. All
/// of a JP2 file is wanted. \throws TileError for damage, and where the front ends inside what is wanted.
Codestream parse_front(std::span<const std::byte> front);

}  // namespace slidestream
