#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sink/image_sink.hpp"

/// \file
/// What formats of images there are, and what goes into which. A format is a sink, its `ImageFormatTraits` beside it,
/// which image_formats.cpp lists, and a name in the configuration's key `image.format`. An image that is one file or
/// one folder takes nothing else to be made, told from others' files, replaced and removed.
///
/// Others choose formats for what they do with images:
/// - cli/run_inputs.cpp: by which names slides may be images of this program.
/// - cli/info_command.cpp: what it says of images that this program doesn't read.
/// - report/made.cpp and pictures.cpp: of which images a report has pictures.
/// - python/slidestream/_map.py: what `map` takes for the name of a file.
///
/// Deep Zoom alone is several files, and who looks after files in cli/ knows their names (deep_zoom.hpp). A few more
/// name one format for a need of its own: its keys, its page, or a warning.

namespace slidestream {

/// What is particular to a format. All of it is for any thread.
struct ImageFormatTraits {
  using Make = std::unique_ptr<ImageSink> (*)(const std::filesystem::path& file, const ImageDescription& description,
                                              const ImageOptions& options);

  ImageFormat format = ImageFormat::ome_tiff;
  /// Those that name the format where a user names a file, longer ones first; no other format's ends so. The first one
  /// ends the names of a run's images.
  std::vector<std::string_view> suffixes;
  int tile = 256;  ///< side in pixels, unless set
  std::vector<TileCompression> compressions;
  /// Unless set: for such settings and pixels.
  TileCompression (*compression)(const ImageConfig& config, const PixelFormat& pixels) = nullptr;
  bool is_folder = false;         ///< an image is a folder, not a file
  bool has_any_name = false;      ///< a folder without a suffix may be one, where the format is named
  bool holds_8_bits = false;      ///< 1 or 3 channels of 8 bits, nothing else
  bool needs_pixel_size = false;  ///< images without a known one are refused
  const char* settings = "";      ///< the section of the configuration with keys of its own
  /// Where there is one: checks these keys before a run, and returns a line for the user; empty: none. \throws
  /// ConfigError
  std::string (*begin)(const Config& config) = nullptr;
  const char* tiles_folder = "";     ///< what its name ends with, where tiles lie in a folder beside the file
  bool goes_to_one_pixel = false;    ///< levels do, whatever is set
  bool has_planes = false;           ///< a tile holds one channel
  bool takes_encoded_tiles = false;  ///< JPEG that a device made
  Make make = nullptr;               ///< the sink
  /// Whether this program wrote it. A file has its mark from the first byte on.
  bool (*is_own)(const std::filesystem::path& image) = nullptr;
  /// The same of a file that folders give as a slide. Null: such images aren't read.
  bool (*is_own_slide)(const std::filesystem::path& slide) = nullptr;
  std::vector<std::string_view> level_files = {};  ///< what folders of levels hold at any depth; `#`: digits
  // The rest is of images that are folders.
  /// Files beside the folders of levels. A folder that has one without `#` is an image, whoever made it.
  std::vector<std::string_view> files = {};
  /// Whether this program wrote a folder that isn't whole; nothing where none of the format's files says it.
  std::optional<bool> (*is_own_begun)(const std::filesystem::path& folder) = nullptr;
  /// Whether this program wrote some of a folder, whatever else somebody put there.
  bool (*has_own_part)(const std::filesystem::path& folder) = nullptr;
};

/// Those of each format, beside its sink.
ImageFormatTraits ome_tiff_traits();
ImageFormatTraits ome_zarr_traits();
ImageFormatTraits dzi_traits();
ImageFormatTraits dicom_traits();

/// All of them, in the order of `ImageFormat`.
std::span<const ImageFormatTraits> image_formats();

/// The format whose suffix, in small letters, ends a name; nullptr: none does.
const ImageFormatTraits* format_named(std::string_view name);

/// Whether a run makes a folder of that name: an image, or its tiles.
bool is_folder_of_image(std::string_view name);

/// \param format  automatic and none: those of OME-TIFF.
const ImageFormatTraits& traits_of(ImageFormat format);

/// As settings name it, such as "ome-tiff".
const std::string& name_of(ImageFormat format);

/// Whether a format has such tiles.
bool has_compression(ImageFormat format, TileCompression compression) noexcept;

/// "none or zstd": those that a format has for such pixels, as settings have them. \param with_auto  and `auto` first.
std::string compressions_of(ImageFormat format, const PixelFormat& pixels, bool with_auto = false);

/// What a run's settings come to for an image of such pixels. \throws ConfigError for what doesn't go together.
ImageOptions image_options(const ImageConfig& config, const PixelFormat& pixels, bool labels = false);

/// A sample that isn't there yet: white, and of labels `blank_label`.
double blank_value(const ImageDescription& description) noexcept;
/// The same as the bytes of such a sample.
std::vector<std::byte> blank_sample(const ImageDescription& description);

}  // namespace slidestream
