#include "cli/image_file.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <utility>

#include <slidestream/error.hpp>
#include <slidestream/network.hpp>

#include "config/keys.hpp"

namespace slidestream::cli {

namespace {

/// Longer ones first.
constexpr std::array<std::pair<std::string_view, ImageFormat>, 7> suffixes = {{{".ome.tif", ImageFormat::ome_tiff},
                                                                               {".ome.tiff", ImageFormat::ome_tiff},
                                                                               {".tif", ImageFormat::ome_tiff},
                                                                               {".tiff", ImageFormat::ome_tiff},
                                                                               {".ome.zarr", ImageFormat::ome_zarr},
                                                                               {".zarr", ImageFormat::ome_zarr},
                                                                               {".dzi", ImageFormat::dzi}}};

/// ".a, .b or .c"
std::string suffixes_of(ImageFormat format) {
  std::vector<std::string_view> all;
  for (const auto& [suffix, of] : suffixes) {
    if (of == format) all.push_back(suffix);
  }
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) text += i + 1 < all.size() ? ", " : " or ";
    text += all[i];
  }
  return text;
}

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

constexpr std::string_view features_suffix = ".h5";

bool gives_features(const Config& config) {
  return config.model.network && config.model.network->output().kind == NetworkOutput::Kind::vector;
}

}  // namespace

std::optional<ImageFile> image_file(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  const std::string small = in_small_letters(name);
  for (const auto& [suffix, format] : suffixes) {
    if (!small.ends_with(suffix)) continue;
    if (small.size() == suffix.size()) return std::nullopt;
    return ImageFile{format, name.substr(0, name.size() - suffix.size())};
  }
  return std::nullopt;
}

std::string image_format_for(const std::string& file) {
  const auto named = image_file(file);
  const ImageFormat format = named ? named->format : ImageFormat::ome_tiff;
  return find_key("image", "format")->choices[static_cast<std::size_t>(format)];
}

std::optional<std::string> features_file(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  if (!in_small_letters(name).ends_with(features_suffix) || name.size() == features_suffix.size()) return std::nullopt;
  return name.substr(0, name.size() - features_suffix.size());
}

std::string output_name(const std::string& file) {
  const auto image = image_file(file);
  return image ? image->name : features_file(file).value_or(file);
}

void check_output_file(const std::string& file, const Config& config, const std::vector<std::string>& slides) {
  const std::filesystem::path path = file;
  const ImageFormat format = config.image.format;
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  const auto named = image_file(file);
  const bool features = gives_features(config);
  const bool is_fitting = features ? features_file(file).has_value() : named && named->format == format;
  if (std::filesystem::is_directory(status)) {
    throw ConfigError(is_fitting && !features && format == ImageFormat::ome_zarr
                          ? file + ": it is there already, and a folder isn't replaced"
                          : file + ": it is a folder; several slides go there with --out, and one to a file in it");
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw ConfigError(file + ": it isn't a regular file");
  }
  if (!is_fitting) {
    throw ConfigError(file + ": the file that is written ends in " +
                      (features ? std::string(features_suffix) : suffixes_of(format)) +
                      "; for a folder there is --out");
  }
  if (slides.size() > 1) {
    throw ConfigError(file + ": one file holds one slide, and there are " + std::to_string(slides.size()) +
                      "; name a folder for them with --out");
  }
  if (std::filesystem::equivalent(path, slides.front(), code)) throw ConfigError(file + ": it is the slide itself");
  if (features) return;
  if (format == ImageFormat::ome_zarr && std::filesystem::exists(status)) {
    throw ConfigError(file + ": it is there already, and isn't a folder");
  }
  if (format == ImageFormat::dzi) {
    const std::filesystem::path tiles = path.parent_path() / (path.stem().string() + "_files");
    if (std::filesystem::exists(std::filesystem::symlink_status(tiles, code))) {
      throw ConfigError(tiles.string() + ": it is there already, and a folder isn't replaced");
    }
  }
}

}  // namespace slidestream::cli
