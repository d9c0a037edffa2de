#include "slide/level_tags.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "slide/jpeg_decoder.hpp"

namespace slidestream {
namespace {

constexpr std::uint64_t most_tiles = std::uint64_t{1} << 24;  // 256 MiB of ranges
constexpr std::uint64_t most_tile_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t most_jpeg2000_tile_pixels = std::uint64_t{1} << 26;  // OpenJPEG holds 4 bytes a sample
constexpr std::uint32_t most_jpeg_tables = 65535;

constexpr std::uint64_t compression_jpeg2000_ycbcr = 33003;  // Aperio
constexpr std::uint64_t compression_jpeg2000 = 33004;        // as some scanners write it
constexpr std::uint64_t compression_jpeg2000_rgb = 33005;    // Aperio
constexpr std::uint64_t compression_jpeg2000_tiff = 34712;

/// The tags of one directory, and the refusal of what isn't supported.
class Tags {
 public:
  Tags(const RawTiff& raw, const RawDirectory& directory, const File& file)
      : raw_(raw), directory_(directory), file_(file) {}

  [[noreturn]] void refuse(const std::string& cause) const { throw_slide_error(file_.path(), cause); }
  [[noreturn]] void refuse(const char* tag, std::uint64_t value, const char* supported) const {
    refuse(std::string(tag) + " " + std::to_string(value) + " isn't supported; supported: " + supported);
  }

  /// A tag's first value.
  std::uint64_t number(std::uint16_t tag, const char* name) const {
    if (directory_.find(tag) == nullptr) refuse(std::string(name) + " is missing");
    const std::optional<std::uint64_t> value = raw_.number(directory_, tag);
    if (!value) refuse(std::string(name) + " has no value that can be read");
    return *value;
  }
  /// The same for a tag that may be missing.
  std::uint64_t number_or(std::uint64_t missing, std::uint16_t tag, const char* name) const {
    return directory_.find(tag) == nullptr ? missing : number(tag, name);
  }

  /// A width or height: TIFF's sizes are 32 bits.
  std::int64_t size(std::uint16_t tag, const char* name) const {
    const std::uint64_t value = number(tag, name);
    if (value == 0 || value > std::numeric_limits<std::uint32_t>::max()) refuse(name, value, "1 to 4294967295");
    return static_cast<std::int64_t>(value);
  }

  /// All values of a tag that has one a sample; the default when it is missing.
  std::vector<std::uint64_t> numbers_or(std::uint64_t missing, std::uint16_t tag, const char* name) const {
    const RawEntry* entry = directory_.find(tag);
    return entry == nullptr ? std::vector<std::uint64_t>{missing} : raw_.values(*entry, name);
  }

 private:
  const RawTiff& raw_;
  const RawDirectory& directory_;
  const File& file_;
};

bool is_jpeg2000(std::uint64_t compression) {
  return compression == compression_jpeg2000_ycbcr || compression == compression_jpeg2000 ||
         compression == compression_jpeg2000_rgb || compression == compression_jpeg2000_tiff;
}

Codec codec_of(const Tags& tags, std::uint64_t compression) {
  if (is_jpeg2000(compression)) return Codec::jpeg2000;
  constexpr const char* supported =
      "1 none, 5 LZW, 7 JPEG, 8 and 32946 Deflate, 32773 PackBits, 33003 33004 33005 34712 JPEG 2000, "
      "34887 LERC, 34925 LZMA, 50000 Zstd, 50001 WebP, as far as libtiff was built with them";
  if (compression == COMPRESSION_OJPEG) tags.refuse("Compression", compression, supported);
  if (compression == COMPRESSION_JPEG) return Codec::jpeg;
  if (compression > 65535 || TIFFIsCODECConfigured(static_cast<std::uint16_t>(compression)) != 1) {
    tags.refuse("Compression", compression, supported);
  }
  switch (compression) {
    case COMPRESSION_NONE:
      return Codec::none;
    case COMPRESSION_LZW:
      return Codec::lzw;
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
      return Codec::deflate;
    case COMPRESSION_PACKBITS:
      return Codec::packbits;
    case COMPRESSION_LERC:
      return Codec::lerc;
    case COMPRESSION_LZMA:
      return Codec::lzma;
    case COMPRESSION_ZSTD:
      return Codec::zstd;
    case COMPRESSION_WEBP:
      return Codec::webp;
    default:
      return Codec::other;
  }
}

Colour colour_of(const Tags& tags, Codec codec, std::uint64_t compression, std::uint64_t photometric) {
  switch (photometric) {
    case PHOTOMETRIC_MINISBLACK:
      return Colour::grey;
    case PHOTOMETRIC_MINISWHITE:
      return Colour::grey_inverted;
    case PHOTOMETRIC_RGB:
      return compression == compression_jpeg2000_ycbcr ? Colour::ycbcr : Colour::rgb;
    case PHOTOMETRIC_YCBCR:
      if (compression == compression_jpeg2000 || compression == compression_jpeg2000_rgb) return Colour::rgb;
      if (codec == Codec::jpeg || codec == Codec::jpeg2000) return Colour::ycbcr;
      tags.refuse("PhotometricInterpretation", photometric,
                  "6 YCbCr with JPEG and JPEG 2000 only; 0 MinIsWhite, 1 MinIsBlack and 2 RGB with all");
    default:
      tags.refuse("PhotometricInterpretation", photometric, "0 MinIsWhite, 1 MinIsBlack, 2 RGB, 6 YCbCr");
  }
}

void check_samples(const Tags& tags, const Level& level, LevelDetail& detail) {
  for (const std::uint64_t bits : tags.numbers_or(1, TIFFTAG_BITSPERSAMPLE, "BitsPerSample")) {
    if (bits != 8) tags.refuse("BitsPerSample", bits, "8");
  }
  for (const std::uint64_t format : tags.numbers_or(SAMPLEFORMAT_UINT, TIFFTAG_SAMPLEFORMAT, "SampleFormat")) {
    if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) {
      tags.refuse("SampleFormat", format, "1 unsigned, 4 void");
    }
  }
  const auto require = [&tags](std::uint16_t tag, const char* name, std::uint64_t only, const char* supported) {
    const std::uint64_t value = tags.number_or(only, tag, name);
    if (value != only) tags.refuse(name, value, supported);
  };
  require(TIFFTAG_PLANARCONFIG, "PlanarConfiguration", PLANARCONFIG_CONTIG, "1 contiguous");
  require(TIFFTAG_FILLORDER, "FillOrder", FILLORDER_MSB2LSB, "1");
  require(TIFFTAG_IMAGEDEPTH, "ImageDepth", 1, "1");
  require(TIFFTAG_TILEDEPTH, "TileDepth", 1, "1");
  const std::uint64_t samples = tags.number_or(1, TIFFTAG_SAMPLESPERPIXEL, "SamplesPerPixel");
  const bool grey = level.colour == Colour::grey || level.colour == Colour::grey_inverted;
  const std::uint64_t colours = grey ? 1 : 3;
  if (samples != colours && samples != colours + 1) {
    tags.refuse("SamplesPerPixel", samples, grey ? "1 or 2 for grey" : "3 or 4 for colour");
  }
  detail.samples = static_cast<int>(samples);
}

void read_geometry(const Tags& tags, bool tiled, const OpenOptions& options, Level& level) {
  level.width = tags.size(TIFFTAG_IMAGEWIDTH, "ImageWidth");
  level.height = tags.size(TIFFTAG_IMAGELENGTH, "ImageLength");
  if (level.width > options.max_pixels / level.height) {
    tags.refuse("ImageWidth x ImageLength " + std::to_string(level.width) + " x " + std::to_string(level.height) +
                " is more than max_pixels " + std::to_string(options.max_pixels));
  }
  level.tiled = tiled;
  if (tiled) {
    level.tile_width = tags.size(TIFFTAG_TILEWIDTH, "TileWidth");
    level.tile_height = tags.size(TIFFTAG_TILELENGTH, "TileLength");
  } else {
    const auto all = static_cast<std::uint64_t>(level.height);  // missing: one strip
    const std::uint64_t rows = tags.number_or(all, TIFFTAG_ROWSPERSTRIP, "RowsPerStrip");
    if (rows == 0) tags.refuse("RowsPerStrip", 0, "from 1");
    level.tile_width = level.width;
    level.tile_height = static_cast<std::int64_t>(std::min(rows, all));
  }
  level.columns = (level.width + level.tile_width - 1) / level.tile_width;
  level.rows = (level.height + level.tile_height - 1) / level.tile_height;
}

std::string tile_size(const Level& level) {
  return std::string(level.tiled ? "TileWidth x TileLength " : "ImageWidth x RowsPerStrip ") +
         std::to_string(level.tile_width) + " x " + std::to_string(level.tile_height);
}

void check_tile_size(const Tags& tags, const Level& level, const LevelDetail& detail) {
  // Both sides are below 2^32, so that the product fits.
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(level.tile_width) * static_cast<std::uint64_t>(level.tile_height);
  if (pixels > most_tile_bytes / static_cast<unsigned>(detail.samples)) {
    tags.refuse(tile_size(level) + " isn't supported; supported: up to 2^30 bytes when decoded");
  }
  if (level.codec == Codec::jpeg2000 && pixels > most_jpeg2000_tile_pixels) {
    tags.refuse(tile_size(level) + " isn't supported; supported: up to 2^26 pixels with JPEG 2000");
  }
}

/// Tile arrays straight from the file: libtiff would fill up what is missing and estimate what looks odd.
void read_tile_ranges(const Tags& tags, const RawTiff& raw, const RawDirectory& directory, const Level& level,
                      LevelDetail& detail) {
  const std::uint64_t expected = static_cast<std::uint64_t>(level.columns) * static_cast<std::uint64_t>(level.rows);
  if (expected > most_tiles) {
    tags.refuse(tile_size(level) + " cuts the image into " + std::to_string(expected) +
                " tiles; supported: up to 2^24");
  }
  const auto read = [&](std::uint16_t tile_tag, std::uint16_t strip_tag, const char* what) {
    // libtiff takes either tag for either layout, and so do we.
    const RawEntry* entry = directory.find(level.tiled ? tile_tag : strip_tag);
    if (entry == nullptr) entry = directory.find(level.tiled ? strip_tag : tile_tag);
    const std::string name = std::string(level.tiled ? "Tile" : "Strip") + what;
    if (entry == nullptr) tags.refuse(name + " is missing");
    if (entry->count != expected) {
      tags.refuse(name + " has " + std::to_string(entry->count) + " values, expected " + std::to_string(expected) +
                  " for " + std::to_string(level.columns) + " x " + std::to_string(level.rows) +
                  (level.tiled ? " tiles" : " strips"));
    }
    return raw.values(*entry, name);
  };
  const std::vector<std::uint64_t> offsets = read(TIFFTAG_TILEOFFSETS, TIFFTAG_STRIPOFFSETS, "Offsets");
  const std::vector<std::uint64_t> lengths = read(TIFFTAG_TILEBYTECOUNTS, TIFFTAG_STRIPBYTECOUNTS, "ByteCounts");
  detail.tiles.resize(expected);
  for (std::size_t i = 0; i < expected; ++i) detail.tiles[i] = {offsets[i], lengths[i]};
}

/// libtiff drops a tag that it can't read without an error, so whether there is one is asked of the file.
void read_jpeg_tables(const Tags& tags, const RawDirectory& directory, const TiffFile& tiff, LevelDetail& detail) {
  const RawEntry* entry = directory.find(TIFFTAG_JPEGTABLES);
  if (entry == nullptr || !jpeg_tables_hold_a_table(entry->count)) return;
  const std::string tables = "JPEGTables of " + std::to_string(entry->count) + " bytes";
  if (entry->count > most_jpeg_tables) tags.refuse(tables + " isn't supported; supported: up to 65535");
  std::uint32_t count = 0;
  const void* bytes = nullptr;
  const bool read = TIFFGetField(tiff.get(), TIFFTAG_JPEGTABLES, &count, &bytes) == 1 && bytes != nullptr;
  if (!read || count != entry->count) {
    tags.refuse(tables + " at byte " + std::to_string(entry->value_at) + " can't be read");
  }
  const auto* first = static_cast<const std::byte*>(bytes);
  detail.jpeg_tables.assign(first, first + count);
  const std::string damage = damage_of_jpeg_tables(detail.jpeg_tables);
  if (!damage.empty()) tags.refuse("JPEGTables is damaged: " + damage);
}

}  // namespace

void read_level(const RawTiff& raw, const RawDirectory& directory, TiffFile& tiff, const File& file,
                const OpenOptions& options, Level& level, LevelDetail& detail) {
  const Tags tags(raw, directory, file);
  detail.directory_offset = directory.offset;
  const std::uint64_t compression = tags.number_or(COMPRESSION_NONE, TIFFTAG_COMPRESSION, "Compression");
  level.codec = codec_of(tags, compression);
  level.compression = static_cast<int>(compression);
  const std::uint64_t photometric = tags.number(TIFFTAG_PHOTOMETRIC, "PhotometricInterpretation");
  level.colour = colour_of(tags, level.codec, compression, photometric);
  check_samples(tags, level, detail);
  read_geometry(tags, directory.has_tiles(), options, level);
  check_tile_size(tags, level, detail);
  read_tile_ranges(tags, raw, directory, level, detail);
  if (!tiff.set_directory(directory.offset)) {
    tags.refuse("directory at byte " + std::to_string(directory.offset) + " can't be read: " + tiff.message());
  }
  if (level.codec == Codec::jpeg) read_jpeg_tables(tags, directory, tiff, detail);
}

}  // namespace slidestream
