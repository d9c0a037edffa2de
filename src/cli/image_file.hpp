#pragma once

#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>

namespace slidestream::cli {

/// What the name of an image says.
struct ImageFile {
  ImageFormat format = ImageFormat::none;
  std::string name;  ///< without what tells the format
};

/// By how the file's name ends, in any case of letters; nothing where it is no image's, or nothing else.
std::optional<ImageFile> image_file(const std::string& file);

/// Whether one slide can be written to that file, or folder, in that format. \throws ConfigError.
void check_image_file(const std::string& file, ImageFormat format, const std::vector<std::string>& slides);

}  // namespace slidestream::cli
