#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sink/image_sink.hpp"

/// \file
/// What formats of images there are, and what goes into which. A format is its sink, and an entry in image_formats.cpp.

namespace slidestream {

/// What the names of a format's images end with.
const char* image_suffix(ImageFormat format) noexcept;

/// Whether a format has such tiles.
bool has_compression(ImageFormat format, TileCompression compression) noexcept;

/// "none or zstd": those that a format has for such pixels, as settings have them. \param with_auto  and `auto` first.
std::string compressions_of(ImageFormat format, const PixelFormat& pixels, bool with_auto = false);

/// What a run's settings come to for an image of such pixels. \throws ConfigError for what doesn't go together.
ImageOptions image_options(const ImageConfig& config, const PixelFormat& pixels, bool labels = false);

/// The bytes of a sample that isn't there yet: white, and of labels the class 0.
std::vector<std::byte> blank_sample(const ImageDescription& description);

}  // namespace slidestream
