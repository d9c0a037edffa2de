#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

/// \file
/// Synthetic slides, for trying and for benchmarks.

namespace slidestream {

/// How tiles are coded.
enum class SynthCodec {
  jpeg_420,   ///< YCbCr, chroma halved in both directions
  jpeg_422,   ///< YCbCr, chroma halved across
  jpeg_444,   ///< YCbCr, full chroma
  jpeg_rgb,   ///< R, G, B as the three components, Photometric RGB, no Adobe marker, as Aperio writes
  jpeg_grey,  ///< one component
  jpeg2000,   ///< 33005, irreversible colour transform; without loss the reversible one
  none,       ///< uncompressed RGB
};

enum class SynthFormat {
  svs,    ///< a TIFF file as Aperio writes them
  dicom,  ///< a folder of DICOM instances, one per level and picture
};

/// What DICOM says of where frames lie.
enum class SynthOffsets { none, basic, extended };

struct SynthOptions {
  SynthFormat format = SynthFormat::svs;
  int parts = 1;                               ///< DICOM: files that level 0 is divided among, a concatenation
  SynthOffsets offsets = SynthOffsets::basic;  ///< DICOM: of encapsulated frames
  std::int64_t width = 8192;                   ///< pixels
  std::int64_t height = 6144;                  ///< pixels
  int tile = 256;                              ///< tile side, pixels, a multiple of 16
  SynthCodec codec = SynthCodec::jpeg_420;
  int quality = 75;        ///< JPEG quality 1 to 100; JPEG 2000: rate by quality, 100 without loss
  std::uint64_t seed = 1;  ///< same options, same file
  int distinct = 0;        ///< 0: every tile its own; N: the level's tiles repeat N different ones
  int levels = 3;          ///< pyramid levels, each 4 x smaller, while the shorter side has 64 pixels
  int missing_tiles = 0;   ///< level-0 tiles with a byte count of 0
  int corrupt_tiles = 0;   ///< level-0 tiles with damaged entropy-coded data
  double mpp = 0.25;       ///< micrometres a pixel, in the description
  bool big_tiff = false;   ///< force BigTIFF; files that need it are BigTIFF anyway
  int threads = 0;         ///< 0: one for every core; the file is the same with any number
};

/// What was written.
struct SynthSummary {
  std::int64_t tiles = 0;   ///< of level 0
  int levels = 0;           ///< fewer than asked for where the slide is too small
  std::uint64_t bytes = 0;  ///< of the file
  bool big_tiff = false;
};

/// Writes a slide: levels, thumbnail, label and macro. Uses little memory whatever the size: a row of tiles of each
/// level, and the distinct tiles. The file appears whole or not at all. With DICOM `file` is a folder, and a level with
/// missing tiles is TILED_SPARSE.
/// \throws OutputError naming the file; ConfigError for options out of range.
SynthSummary write_synthetic_slide(const std::filesystem::path& file, const SynthOptions& options);

}  // namespace slidestream
