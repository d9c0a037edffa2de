#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sink/image_sink.hpp"

/// \file
/// What formats of images there are, and what goes into which. A format is a sink, its `ImageFormatTraits` in
/// image_formats.cpp, and a name in the configuration's key `image.format`. To make an image takes nothing else.
///
/// Other code tells finished and unfinished images apart by names and marks. A new format may need a line:
/// - cli/own_marks.cpp: the mark of this program in a whole image (`kinds`) and in an unfinished one
///   (`foreign_partial`). Code that replaces and removes files asks for it.
/// - python/slidestream/_map.py: suffixes of the files that `map` makes.
/// - sink/partial_folder.cpp: which files an image's folder may hold, of formats that are folders.
/// - stages/images/slide_images.cpp: how much longer names are while images with files beside them are written.
/// - report/made.cpp and pictures.cpp: of which images a report has pictures.
/// - cli/info_command.cpp: what it says of images that this program doesn't read.
///
/// A few more name one format for a need of its own: its keys, its page, or a warning.

namespace slidestream {

/// What is particular to a format. All of it is for any thread.
struct ImageFormatTraits {
  using Make = std::unique_ptr<ImageSink> (*)(const std::filesystem::path& file, const ImageDescription& description,
                                              const ImageOptions& options);

  ImageFormat format = ImageFormat::ome_tiff;
  /// Those that name the format where a user names a file, longer ones first. The first one ends the names of a run's
  /// images.
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
};

/// All of them, in the order of `ImageFormat`.
std::span<const ImageFormatTraits> image_formats();

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
