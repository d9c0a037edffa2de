#pragma once

#include <filesystem>
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

/// What `image.format` is for an image of that name: OME-TIFF where it says nothing.
std::string image_format_for(const std::string& file);

/// The name of a file of features; nothing where it is no such file's.
std::optional<std::string> features_file(const std::string& file);

/// What the name of a slide's one file begins with, be it an image or features.
std::string output_name(const std::string& file);

/// Where what a folder of results has as `name` lies when a slide has one file: that file, and of a table beside it its
/// own name in the same folder.
std::filesystem::path place_beside(const std::string& file, const std::string& name);

/// Whether what one slide comes to can be written to that file, or folder, with those settings. \throws ConfigError.
/// \param overwrite  a file that this program didn't write may be replaced.
void check_output_file(const std::string& file, const Config& config, const std::vector<std::string>& slides,
                       bool overwrite);

}  // namespace slidestream::cli
