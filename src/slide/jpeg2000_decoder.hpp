#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/tile_rule.hpp"
#include "slide/codestream.hpp"
#include "slide/tile_job.hpp"

namespace slidestream {

/// What the rule for tiles asks of a codestream.
CodedFrame frame_of(const Codestream& codestream) noexcept;

/// Memory that OpenJPEG takes for so many samples of all components, in bytes, besides what it takes for each part of
/// the codestream.
std::uint64_t jpeg2000_bytes(std::uint64_t samples, std::uint64_t compressed) noexcept;

/// JPEG 2000 tiles with OpenJPEG. Luminance is component 0 alone where that is Y (irreversible colour transform, YCbCr
/// or grey), else by the formula from red, green and blue. RGB is what OpenJPEG gives, the codestream's own colour
/// transform undone; where the slide says YCbCr, by libjpeg's formula from that. Subsampled components are repeated.
/// One thread. \throws TileError for what OpenJPEG or the codestream's structure shows to be damaged, for samples that
/// aren't 8
///   bits unsigned, and for an image of another size.
void decode_jpeg2000(const TileJob& job, std::span<const std::byte> bytes);

}  // namespace slidestream
