#include "slide/dicom/instance_level.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/quoted_text.hpp"
#include "slide/jpegls_decoder.hpp"
#include "slide/tile_limits.hpp"

namespace slidestream::dicom {

namespace {

struct Syntax {
  std::string_view uid;
  Codec codec;
};
constexpr std::array syntaxes = {
    Syntax{"1.2.840.10008.1.2", Codec::none},
    Syntax{"1.2.840.10008.1.2.1", Codec::none},
    Syntax{"1.2.840.10008.1.2.4.50", Codec::jpeg},
    Syntax{"1.2.840.10008.1.2.4.90", Codec::jpeg2000},  // lossless
    Syntax{"1.2.840.10008.1.2.4.91", Codec::jpeg2000},
    Syntax{"1.2.840.10008.1.2.4.201", Codec::jpeg2000},  // HTJ2K: lossless, so with RPCL, any
    Syntax{"1.2.840.10008.1.2.4.202", Codec::jpeg2000},
    Syntax{"1.2.840.10008.1.2.4.203", Codec::jpeg2000},
    Syntax{"1.2.840.10008.1.2.4.80", Codec::jpegls},  // lossless
    Syntax{"1.2.840.10008.1.2.4.81", Codec::jpegls},
};

Codec codec_of(const Instance& instance, const Refusal& refuse) {
  const auto found = std::ranges::find(syntaxes, std::string_view(instance.transfer_syntax), &Syntax::uid);
  if (found == syntaxes.end()) {
    refuse("TransferSyntaxUID (0002,0010) " + shown_uid(instance.transfer_syntax) +
           " isn't supported; supported: uncompressed, JPEG baseline, JPEG 2000, HTJ2K, JPEG-LS");
  }
  if (found->codec == Codec::jpegls && !decodes_jpegls()) {
    refuse("TransferSyntaxUID (0002,0010) is JPEG-LS, and this program was built without CharLS");
  }
  if ((found->codec == Codec::none) == instance.is_encapsulated()) {
    refuse("PixelData (7FE0,0010) isn't coded as TransferSyntaxUID (0002,0010) says");
  }
  return found->codec;
}

/// What PhotometricInterpretation says of components. Of JPEG 2000 it says what they are where the codestream has no
/// component transform: behind one they are RGB (`colour_of_frame`). YBR_ICT is then YCbCr, by the same formula.
/// YBR_RCT isn't: its differences of colours need 9 bits.
Colour colour_of(const Instance& instance, Codec codec, const Refusal& refuse) {
  const std::string& says = instance.photometric;
  if (instance.samples == 1) {
    if (says == "MONOCHROME2") return Colour::grey;
    if (says == "MONOCHROME1") return Colour::grey_inverted;
  } else if (instance.samples == 3) {
    const bool may_be_halved = codec == Codec::jpeg || codec == Codec::jpeg2000;
    if (says == "YBR_FULL" || (says == "YBR_FULL_422" && may_be_halved)) return Colour::ycbcr;
    if (says == "YBR_ICT" && codec == Codec::jpeg2000) return Colour::ycbcr;
    if (says == "RGB" || (codec == Codec::jpeg2000 && says.starts_with("YBR_"))) return Colour::rgb;
  }
  refuse("PhotometricInterpretation (0028,0004) " + shown_code(says) + " with " + std::to_string(instance.samples) +
         " samples of " + name(codec) + " isn't supported");
}

void check_samples(const Instance& instance, Codec codec, const Refusal& refuse) {
  refuse.require(instance.bits_allocated, 8, "BitsAllocated (0028,0100)");
  refuse.require(instance.bits_stored, 8, "BitsStored (0028,0101)");
  refuse.require(instance.high_bit, 7, "HighBit (0028,0102)");
  refuse.require(instance.is_signed, 0, "PixelRepresentation (0028,0103)");
  if (codec == Codec::none && instance.samples > 1) {
    refuse.require(instance.planar, 0, "PlanarConfiguration (0028,0006)");
  }
  refuse.require(instance.focal_planes, 1, "the number of focal planes");
  refuse.require(instance.optical_paths, 1, "the number of optical paths");
}

}  // namespace

Level level_of(const OpenFile& file, const OpenOptions& options) {
  const Instance& instance = file.instance;
  const Refusal refuse(file);
  if (!instance.pixels) refuse("PixelData (7FE0,0010) is missing");
  Level level;
  level.codec = codec_of(instance, refuse);
  check_samples(instance, level.codec, refuse);
  level.colour = colour_of(instance, level.codec, refuse);
  refuse.require_positive(instance.width, "TotalPixelMatrixColumns (0048,0006)");
  refuse.require_positive(instance.height, "TotalPixelMatrixRows (0048,0007)");
  refuse.require_positive(instance.tile_width, "Columns (0028,0011)");
  refuse.require_positive(instance.tile_height, "Rows (0028,0010)");
  refuse.require_positive(instance.frames, "NumberOfFrames (0028,0008)");
  level.width = instance.width;
  level.height = instance.height;
  level.tile_width = instance.tile_width;
  level.tile_height = instance.tile_height;
  if (level.width > options.max_pixels / level.height) {
    refuse("TotalPixelMatrixColumns x TotalPixelMatrixRows " + std::to_string(level.width) + " x " +
           std::to_string(level.height) + " is more than input.max_pixels " + std::to_string(options.max_pixels));
  }
  const auto pixels = static_cast<std::uint64_t>(level.tile_width * level.tile_height);
  if (pixels > most_tile_bytes / static_cast<std::uint64_t>(instance.samples) ||
      ((level.codec == Codec::jpeg2000 || level.codec == Codec::jpegls) && pixels > most_jpeg2000_tile_pixels)) {
    refuse("Columns x Rows " + std::to_string(level.tile_width) + " x " + std::to_string(level.tile_height) +
           " isn't supported; supported: up to 2^30 bytes when decoded, and 2^26 pixels with JPEG 2000 or JPEG-LS");
  }
  level.columns = (level.width + level.tile_width - 1) / level.tile_width;
  level.rows = (level.height + level.tile_height - 1) / level.tile_height;
  return level;
}

}  // namespace slidestream::dicom
