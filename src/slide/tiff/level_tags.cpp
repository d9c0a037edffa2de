#include "slide/tiff/level_tags.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "slide/channels.hpp"
#include "slide/jpeg_decoder.hpp"
#include "slide/tiff/tiff_file.hpp"
#include "slide/tile_limits.hpp"

namespace slidestream {
namespace {

constexpr std::uint64_t most_values_of_samples = 64;  // of a tag that has one per sample
constexpr std::uint32_t most_jpeg_tables = 65535;
constexpr std::uint64_t most_samples = 1024;  // per pixel

constexpr std::uint64_t compression_jpeg2000_ycbcr = 33003;  // Aperio
constexpr std::uint64_t compression_jpeg2000 = 33004;        // as some scanners write it
constexpr std::uint64_t compression_jpeg2000_rgb = 33005;    // Aperio
constexpr std::uint64_t compression_jpeg2000_tiff = 34712;

/// The tags of one directory, and the refusal of what isn't supported.
class Tags {
 public:
  Tags(const RawTiff& raw, const RawDirectory& directory, const File& file)
      : raw_(raw), directory_(directory), file_(file) {}

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  bool has(std::uint16_t tag) const noexcept { return directory_.find(tag) != nullptr; }

  [[noreturn]] void refuse(const std::string& cause) const { throw_slide_error(file_.path(), cause); }
  [[noreturn]] void refuse(const char* tag, std::uint64_t value, const char* supported) const {
    refuse(std::string(tag) + " " + std::to_string(value) + " isn't supported; supported: " + supported);
  }

  void refuse_twice(std::uint16_t tag, const std::string& name) const {
    if (directory_.has_twice(tag)) refuse(name + " stands twice");
  }

  /// The value of a tag that has one.
  std::uint64_t number(std::uint16_t tag, const char* name) const {
    std::string fault;
    const std::optional<std::uint64_t> value = raw_.only_number(directory_, tag, fault);
    if (!value) refuse(std::string(name) + " " + fault);
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
    if (entry == nullptr) return {missing};
    refuse_twice(tag, name);
    if (entry->count > most_values_of_samples) {
      refuse(std::string(name) + " has " + std::to_string(entry->count) + " values, supported are up to " +
             std::to_string(most_values_of_samples));
    }
    std::vector<std::uint64_t> values = raw_.values(*entry, name);
    if (values.empty()) refuse(std::string(name) + " has no value that can be read");
    return values;
  }

  /// Rational numbers; none where the tag is missing or has fewer.
  std::vector<float> reals(std::uint16_t tag, unsigned count) const {
    constexpr std::uint64_t rational_bytes = 8;
    std::vector<float> values;
    const RawEntry* entry = directory_.find(tag);
    if (entry == nullptr || entry->type != TIFF_RATIONAL || entry->count < count) return values;
    RawDirectory one;
    one.entries = {*entry};
    for (unsigned i = 0; i < count; ++i) {
      const std::optional<float> value = raw_.real(one, tag);
      if (!value) return {};
      values.push_back(*value);
      one.entries.front().value_at += rational_bytes;
    }
    return values;
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
  const auto codec = codec_of_libtiff(compression);
  if (!codec || TIFFIsCODECConfigured(static_cast<std::uint16_t>(compression)) != 1) {
    tags.refuse("Compression", compression, supported);
  }
  return *codec;
}

}  // namespace

std::optional<Codec> codec_of_libtiff(std::uint64_t compression) noexcept {
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
      return std::nullopt;
  }
}

namespace {

Colour colour_of(const Tags& tags, Codec codec, std::uint64_t compression, std::uint64_t photometric, bool is_aperios) {
  switch (photometric) {
    case PHOTOMETRIC_MINISBLACK:
      return Colour::grey;
    case PHOTOMETRIC_MINISWHITE:
      return Colour::grey_inverted;
    case PHOTOMETRIC_RGB:
      // Aperio's 33003 is YCbCr, whatever its tag says. Of other writers that number says less than the tag.
      return compression == compression_jpeg2000_ycbcr && is_aperios ? Colour::ycbcr : Colour::rgb;
    case PHOTOMETRIC_YCBCR:
      if (compression == compression_jpeg2000 || compression == compression_jpeg2000_rgb) return Colour::rgb;
      if (codec == Codec::jpeg || codec == Codec::jpeg2000) return Colour::ycbcr;
      tags.refuse("PhotometricInterpretation", photometric,
                  "6 YCbCr with JPEG and JPEG 2000 only; 0 MinIsWhite, 1 MinIsBlack and 2 RGB with all");
    default:
      tags.refuse("PhotometricInterpretation", photometric, "0 MinIsWhite, 1 MinIsBlack, 2 RGB, 6 YCbCr");
  }
}

/// Samples beyond the colour's are channels where ExtraSamples calls them unspecified; otherwise they are alpha, which
/// is ignored. All are where the description names them so. Of several channels one is read, as grey.
/// \param apart  whether each sample has tiles of its own
void choose_sample(const Tags& tags, const OpenOptions& options, bool apart, const SampleNames& said, Level& level,
                   LevelCoding& coding) {
  constexpr std::uint64_t unspecified = 0;
  const bool rgb = level.colour == Colour::rgb || level.colour == Colour::ycbcr;
  const std::vector<std::uint64_t> extra =
      tags.numbers_or(EXTRASAMPLE_ASSOCALPHA, TIFFTAG_EXTRASAMPLES, "ExtraSamples");
  const bool are_named = said.names.size() == static_cast<std::size_t>(coding.samples);
  const bool are_said = said.are_channels && are_named;
  const bool have_unspecified =
      coding.samples > (rgb ? 3 : 1) && std::find(extra.begin(), extra.end(), unspecified) != extra.end();
  const bool several = are_said || have_unspecified;
  if (several) coding.channels = static_cast<std::size_t>(coding.samples);
  if (several && !apart && (level.codec == Codec::jpeg || level.codec == Codec::jpeg2000)) {
    tags.refuse("has " + std::to_string(coding.channels) + " channels, and " + options.channel_name +
                " can't choose among the samples of " + std::string(name(level.codec)) + " tiles");
  }
  Channels channels{coding.channels, coding.channels, {}, rgb && !are_said};
  if (several && are_named) channels.names = said.names;
  coding.first_sample = static_cast<int>(chosen_channel(tags.path(), channels, options));
  if (!several) return;
  if (rgb) level.colour = Colour::grey;
}

/// Whether samples lie in planes, each with tiles of its own. One sample a pixel is the same in both ways.
bool has_planes(const Tags& tags, const Level& level) {
  if (tags.number_or(1, TIFFTAG_SAMPLESPERPIXEL, "SamplesPerPixel") == 1) return false;
  const std::uint64_t planar = tags.number_or(PLANARCONFIG_CONTIG, TIFFTAG_PLANARCONFIG, "PlanarConfiguration");
  if (planar == PLANARCONFIG_CONTIG) return false;
  if (planar != PLANARCONFIG_SEPARATE) tags.refuse("PlanarConfiguration", planar, "1 contiguous, 2 separate planes");
  const auto refuse_with = [&tags](const char* other) {
    tags.refuse(std::string("PlanarConfiguration 2 isn't supported with ") + other + "; supported: 1 contiguous");
  };
  if (level.colour == Colour::ycbcr) refuse_with("YCbCr");
  if (level.codec == Codec::webp) refuse_with("webp");  // it holds no single planes
  return true;
}

/// Returns whether samples lie in planes.
bool check_samples(const Tags& tags, const OpenOptions& options, const SampleNames& said, Level& level,
                   LevelCoding& coding) {
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
  const bool apart = has_planes(tags, level);
  require(TIFFTAG_ORIENTATION, "Orientation", ORIENTATION_TOPLEFT,
          "1, the first pixel at the upper left; turn the image and write it again");
  require(TIFFTAG_FILLORDER, "FillOrder", FILLORDER_MSB2LSB, "1");
  require(TIFFTAG_IMAGEDEPTH, "ImageDepth", 1, "1");
  require(TIFFTAG_TILEDEPTH, "TileDepth", 1, "1");
  const std::uint64_t samples = tags.number_or(1, TIFFTAG_SAMPLESPERPIXEL, "SamplesPerPixel");
  const bool grey = level.colour == Colour::grey || level.colour == Colour::grey_inverted;
  const std::uint64_t colours = grey ? 1 : 3;
  const bool one_alpha_at_most = samples == colours || samples == colours + 1;
  const bool are_said = said.are_channels && said.names.size() == samples;
  const bool may_be_channels =
      samples > colours && samples <= most_samples && (tags.has(TIFFTAG_EXTRASAMPLES) || are_said);
  if (one_alpha_at_most || may_be_channels) {
    coding.samples = static_cast<int>(samples);
    choose_sample(tags, options, apart, said, level, coding);
  }
  if (!one_alpha_at_most && coding.channels == 1) {
    if (grey && (samples == 3 || samples == 4) && !tags.has(TIFFTAG_EXTRASAMPLES)) {
      tags.refuse("SamplesPerPixel " + std::to_string(samples) +
                  " contradicts PhotometricInterpretation, which says grey, as no ExtraSamples says what the others "
                  "are; colours need PhotometricInterpretation 2, and channels ExtraSamples 0");
    }
    tags.refuse("SamplesPerPixel", samples, grey ? "1 or 2 for grey" : "3 or 4 for colour");
  }
  return apart;
}

void read_geometry(const Tags& tags, bool tiled, const OpenOptions& options, Level& level) {
  level.width = tags.size(TIFFTAG_IMAGEWIDTH, "ImageWidth");
  level.height = tags.size(TIFFTAG_IMAGELENGTH, "ImageLength");
  if (level.width > options.max_pixels / level.height) {
    tags.refuse("ImageWidth x ImageLength " + std::to_string(level.width) + " x " + std::to_string(level.height) +
                " is more than input.max_pixels " + std::to_string(options.max_pixels));
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

void check_tile_size(const Tags& tags, const Level& level, const LevelCoding& coding) {
  // Both sides are below 2^32, so that the product fits.
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(level.tile_width) * static_cast<std::uint64_t>(level.tile_height);
  if (pixels > most_tile_bytes / static_cast<unsigned>(coding.samples)) {
    tags.refuse(tile_size(level) + " isn't supported; supported: up to 2^30 bytes when decoded");
  }
  if (level.codec == Codec::jpeg2000 && pixels > most_jpeg2000_tile_pixels) {
    tags.refuse(tile_size(level) + " isn't supported; supported: up to 2^26 pixels with JPEG 2000");
  }
}

/// Without compression a tile's length says its size, too: where it is more, rows would lie elsewhere than they are
/// looked for. One strip is the whole image, and what is behind it moves nothing.
void check_sample_bytes(const Tags& tags, const Level& level, const LevelCoding& coding, std::uint64_t planes,
                        const std::string& name) {
  if (coding.tiles.size() == planes && !level.tiled) return;
  const std::uint64_t samples = static_cast<std::uint64_t>(coding.samples) / planes;
  const std::uint64_t most = static_cast<std::uint64_t>(level.tile_width * level.tile_height) * samples;
  const auto longer = std::ranges::find_if(coding.tiles, [most](const TileRange& tile) { return tile.length > most; });
  if (longer == coding.tiles.end()) return;
  tags.refuse(name + " of number " + std::to_string(longer - coding.tiles.begin()) + " is " +
              std::to_string(longer->length) + ", but " + tile_size(level) + " with " + std::to_string(samples) +
              (samples == 1 ? " sample" : " samples") + " a pixel takes " + std::to_string(most));
}

/// Tile arrays straight from the file: libtiff would fill up what is missing and estimate what looks odd.
/// \param planes  that each have all tiles, one plane's behind the other's
void read_tile_ranges(const Tags& tags, const RawTiff& raw, OpenBudget& budget, const RawDirectory& directory,
                      const Level& level, std::uint64_t planes, LevelCoding& coding) {
  const std::uint64_t of_plane = static_cast<std::uint64_t>(level.columns) * static_cast<std::uint64_t>(level.rows);
  const std::uint64_t expected = of_plane * planes;
  const auto find = [&](std::uint16_t tile_tag, std::uint16_t strip_tag, const std::string& name) {
    // libtiff takes either tag for either layout, and so do we.
    const RawEntry* entry = directory.find(level.tiled ? tile_tag : strip_tag);
    if (entry == nullptr) entry = directory.find(level.tiled ? strip_tag : tile_tag);
    if (entry == nullptr) tags.refuse(name + " is missing");
    tags.refuse_twice(entry->tag, name);
    if (entry->count != expected) {
      tags.refuse(name + " has " + std::to_string(entry->count) + " values, expected " + std::to_string(expected) +
                  " for " + (planes == 1 ? "" : std::to_string(planes) + " planes of ") +
                  std::to_string(level.columns) + " x " + std::to_string(level.rows) +
                  (level.tiled ? " tiles" : " strips"));
    }
    return entry;
  };
  const std::string kind = level.tiled ? "Tile" : "Strip";
  const std::string offsets = kind + "Offsets", lengths = kind + "ByteCounts";
  const RawEntry* const offsets_at = find(TIFFTAG_TILEOFFSETS, TIFFTAG_STRIPOFFSETS, offsets);
  const RawEntry* const lengths_at = find(TIFFTAG_TILEBYTECOUNTS, TIFFTAG_STRIPBYTECOUNTS, lengths);
  budget.take_level(expected);
  coding.tiles.reserve(expected);
  raw.for_each_value(*offsets_at, offsets, [&](std::uint64_t offset) { coding.tiles.push_back({offset, 0}); });
  auto tile = coding.tiles.begin();
  raw.for_each_value(*lengths_at, lengths, [&](std::uint64_t length) { (tile++)->length = length; });
  if (level.codec == Codec::none) check_sample_bytes(tags, level, coding, planes, lengths);
}

void read_jpeg_tables(const Tags& tags, const RawTiff& raw, const RawDirectory& directory, LevelCoding& coding) {
  const RawEntry* entry = directory.find(TIFFTAG_JPEGTABLES);
  if (entry == nullptr || !jpeg_tables_hold_a_table(entry->count)) return;
  tags.refuse_twice(TIFFTAG_JPEGTABLES, "JPEGTables");
  const std::string tables = "JPEGTables of " + std::to_string(entry->count) + " bytes";
  if (entry->count > most_jpeg_tables) tags.refuse(tables + " isn't supported; supported: up to 65535");
  const auto bytes = raw.bytes(*entry, most_jpeg_tables);
  if (!bytes) tags.refuse(tables + " at byte " + std::to_string(entry->value_at) + " can't be read");
  coding.jpeg_tables = *bytes;
  const std::string damage = damage_of_jpeg_tables(coding.jpeg_tables);
  if (!damage.empty()) tags.refuse("JPEGTables is damaged: " + damage);
}

/// Codecs without a predictor leave samples as they are, whatever the tag says: then nobody knows what was meant.
void check_predictor(const Tags& tags, Codec codec) {
  const std::uint64_t predictor = tags.number_or(PREDICTOR_NONE, TIFFTAG_PREDICTOR, "Predictor");
  // JPEG and JPEG 2000 predict by themselves.
  if (predictor == PREDICTOR_NONE || codec == Codec::jpeg || codec == Codec::jpeg2000) return;
  const bool has_one = codec == Codec::lzw || codec == Codec::deflate || codec == Codec::zstd || codec == Codec::lzma;
  if (!has_one) {
    tags.refuse("Predictor " + std::to_string(predictor) + " isn't supported with compression " + name(codec) +
                "; supported: 1 none");
  }
  if (predictor != PREDICTOR_HORIZONTAL) tags.refuse("Predictor", predictor, "1 none, 2 horizontal");
}

/// Says which tags would change colours, were they applied. libjpeg takes JFIF's YCbCr for granted, and so do readers.
void warn_of_colours(const Tags& tags, const Level& level, std::vector<std::string>& warnings) {
  const auto warn = [&](const std::string& tag) {
    std::string warning = tag + " isn't applied; colours may look different";
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(std::move(warning));
  };
  const std::vector<float> range = tags.reals(TIFFTAG_REFERENCEBLACKWHITE, 6);
  bool full = true;
  for (std::size_t i = 0; i < range.size(); i += 2) {
    const bool is_centre = i > 0 && range[i] == 128.0F;
    full = full && (range[i] == 0.0F || is_centre) && range[i + 1] == 255.0F;
  }
  if (!full) warn("ReferenceBlackWhite, another range of samples than 0 to 255,");
  if (level.colour != Colour::ycbcr) return;
  const std::vector<float> weights = tags.reals(TIFFTAG_YCBCRCOEFFICIENTS, 3);
  constexpr float jfif_red = 0.299F, close = 0.001F;
  if (!weights.empty() && std::abs(weights[0] - jfif_red) > close) {
    warn("YCbCrCoefficients, other weights than 0.299, 0.587, 0.114,");
  }
}

/// Of tags that aren't read by `Tags::number` and the like, which see to it themselves.
void refuse_second_values(const Tags& tags) {
  tags.refuse_twice(TIFFTAG_SUBIFD, "SubIFDs");
  tags.refuse_twice(TIFFTAG_ICCPROFILE, "ICCProfile");
  tags.refuse_twice(TIFFTAG_YCBCRCOEFFICIENTS, "YCbCrCoefficients");
  tags.refuse_twice(TIFFTAG_REFERENCEBLACKWHITE, "ReferenceBlackWhite");
}

/// TIFF's tiles have sides of multiples of 16. Other sides are read, but they may be wrong.
void warn_of_sides(const Level& level, std::vector<std::string>& warnings) {
  constexpr std::int64_t step = 16;
  if (!level.tiled || (level.tile_width % step == 0 && level.tile_height % step == 0)) return;
  std::string warning = tile_size(level) + " aren't multiples of 16, as TIFF's are";
  if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(std::move(warning));
}

/// Whether tiles of the level are decoded through a libtiff handle.
bool is_libtiffs(Codec codec) { return codec != Codec::none && codec != Codec::jpeg && codec != Codec::jpeg2000; }

/// libtiff must be able to read the directory, too, as it decodes its tiles.
void check_by_libtiff(const Tags& tags, OpenBudget& budget, const RawDirectory& directory, const File& file) {
  TiffFile tiff(file, TiffFile::most_directory_bytes);
  const bool is_read = tiff.set_directory(directory.offset);
  budget.take_bytes(tiff.bytes_read());
  if (!is_read) {
    tags.refuse("directory at byte " + std::to_string(directory.offset) + " can't be read: " + tiff.message());
  }
}

}  // namespace

LevelPlanes read_level(const RawTiff& raw, OpenBudget& budget, const RawDirectory& directory, const File& file,
                       const OpenOptions& options, bool is_aperios, Level& level, LevelCoding& coding,
                       std::vector<std::string>& warnings, const SampleNames& said) {
  const Tags tags(raw, directory, file);
  refuse_second_values(tags);
  const std::uint64_t compression = tags.number_or(COMPRESSION_NONE, TIFFTAG_COMPRESSION, "Compression");
  level.codec = codec_of(tags, compression);
  const std::uint64_t photometric = tags.number(TIFFTAG_PHOTOMETRIC, "PhotometricInterpretation");
  level.colour = colour_of(tags, level.codec, compression, photometric, is_aperios);
  coding.tiles_say_colour =
      level.codec == Codec::jpeg && (level.colour == Colour::rgb || level.colour == Colour::ycbcr);
  const bool apart = check_samples(tags, options, said, level, coding);
  check_predictor(tags, level.codec);
  warn_of_colours(tags, level, warnings);
  read_geometry(tags, directory.has_tiles(), options, level);
  check_tile_size(tags, level, coding);
  warn_of_sides(level, warnings);
  const std::uint64_t planes = apart ? static_cast<std::uint64_t>(coding.samples) : 1;
  read_tile_ranges(tags, raw, budget, directory, level, planes, coding);
  if (level.codec == Codec::jpeg) read_jpeg_tables(tags, raw, directory, coding);
  if (is_libtiffs(level.codec)) check_by_libtiff(tags, budget, directory, file);
  return apart ? take_planes(level, coding) : LevelPlanes();
}

}  // namespace slidestream
