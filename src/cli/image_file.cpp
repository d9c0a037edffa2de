#include "cli/image_file.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <slidestream/error.hpp>
#include <slidestream/network.hpp>

#include "cli/listed_files.hpp"
#include "cli/own_files.hpp"
#include "cli/own_marks.hpp"
#include "sink/deep_zoom.hpp"
#include "sink/image_formats.hpp"
#include "sink/partial_file.hpp"
#include "sink/partial_folder.hpp"

namespace slidestream::cli {

namespace {

/// ".a, .b or .c"
std::string suffixes_of(const ImageFormatTraits& format) {
  std::string text;
  for (std::size_t i = 0; i < format.suffixes.size(); ++i) {
    if (i > 0) text += i + 1 < format.suffixes.size() ? ", " : " or ";
    text += format.suffixes[i];
  }
  return text;
}

/// ".ome.tif, ... or .tiff for ome-tiff, ... and .dzi for dzi"
std::string all_suffixes() {
  std::string text;
  for (const ImageFormatTraits& format : image_formats()) {
    if (!text.empty()) text += &format == &image_formats().back() ? " and " : ", ";
    text += suffixes_of(format) + " for " + name_of(format.format);
  }
  return text;
}

std::string in_small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// NAME_files for NAME.dzi, by the format.
std::filesystem::path tiles_of(const std::filesystem::path& image, const ImageFormatTraits& format) {
  return image.parent_path() / (image.stem().string() + format.tiles_folder);
}

/// What is there under the names that an image has while it is written.
void check_partial_names(const std::filesystem::path& image, const ImageFormatTraits& format, const std::string& slide,
                         bool overwrite) {
  const std::filesystem::path partial = partial_name(image);
  std::error_code code;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(slide, code);
  for (std::filesystem::path at = whole; at.has_relative_path(); at = at.parent_path()) {
    if (!std::filesystem::equivalent(partial, at, code)) continue;
    throw ConfigError(partial.string() + " would be written, and " +
                      (at == whole ? "is this slide" : "holds this slide"));
  }
  const auto is_folder = [&code](const std::filesystem::path& file) {
    return std::filesystem::is_directory(std::filesystem::symlink_status(file, code));
  };
  if (!format.is_folder && is_folder(partial)) throw ConfigError(partial.string() + ": it isn't a regular file");
  try {
    if (format.is_folder) check_folder_names(image, partial);
    if (*format.tiles_folder != '\0') check_folder_names(tiles_of(image, format), tiles_of(partial, format));
  } catch (const Error& error) {
    throw ConfigError(error.what());
  }
  check_partial_target(partial, overwrite);
}

/// Another image may be written under such a name: NAME.partial.tif, or NAME.partial.ome.dzi of NAME.ome.dzi.
void check_finished_name(const std::string& file) {
  const std::string name = in_small_letters(output_name(file));
  if (!name.ends_with(".partial") && !name.ends_with(".partial.ome")) return;
  throw ConfigError(file + ": names of unfinished images end in .partial: choose another");
}

/// Of an image beside the folder. Those of a writer that was killed while it gave them their names are made anew.
void check_tiles(const std::filesystem::path& image, const std::filesystem::path& tiles, bool overwrite) {
  std::error_code code;
  if (!std::filesystem::exists(std::filesystem::symlink_status(tiles, code)) || has_half_its_names(image)) return;
  const bool is_own = has_own_page(image);
  if (is_own && overwrite) return;
  throw ConfigError(tiles.string() + ": it is there already, and " +
                    (is_own ? "--overwrite replaces the image" : "a folder isn't replaced"));
}

/// Whether a slide is such an image itself, under another name. A pattern for some of a format's suffixes may have
/// named both, and nothing in an image tells which slide it was made of.
bool is_image_beside(const std::string& slide, const std::string& file, const ImageFormatTraits& format) {
  const std::string small = in_small_letters(slide);
  return std::ranges::any_of(format.suffixes, [&small](std::string_view suffix) { return small.ends_with(suffix); }) &&
         output_name(slide) != output_name(file) && is_own_image(slide);
}

constexpr std::string_view features_suffix = ".h5";

bool gives_features(const Config& config) {
  return config.model.network && config.model.network->output().kind == NetworkOutput::Kind::vector;
}

}  // namespace

std::optional<ImageFile> image_file(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  const std::string small = in_small_letters(name);
  const ImageFormatTraits* const format = format_named(small);
  if (format == nullptr) return std::nullopt;
  const auto longest = *std::ranges::find_if(format->suffixes, [&](auto suffix) { return small.ends_with(suffix); });
  if (small.size() == longest.size()) return std::nullopt;
  return ImageFile{format->format, name.substr(0, name.size() - longest.size())};
}

std::string image_format_for(const std::string& file) {
  const auto named = image_file(file);
  return name_of(named ? named->format : ImageFormat::ome_tiff);
}

std::optional<std::string> features_file(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  if (!in_small_letters(name).ends_with(features_suffix) || name.size() == features_suffix.size()) return std::nullopt;
  return name.substr(0, name.size() - features_suffix.size());
}

std::string output_name(const std::string& file) {
  if (const auto image = image_file(file)) return image->name;
  return features_file(file).value_or(std::filesystem::path(file).filename().string());
}

std::filesystem::path place_beside(const std::string& file, const std::string& name) {
  const std::filesystem::path path = file;
  return std::filesystem::path(name).extension() == ".csv" ? path.parent_path() / name : path;
}

void check_output_file(const std::string& file, const Config& config, const std::vector<std::string>& slides,
                       bool overwrite) {
  const std::filesystem::path path = file;
  const ImageFormatTraits& format = traits_of(config.image.format);
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  const auto named = image_file(file);
  const bool features = gives_features(config);
  const bool is_to_fill = !features && format.is_folder;
  const bool leads_to_folder = is_link(path) && std::filesystem::is_directory(status);
  const bool has_any_name = format.has_any_name && !path.has_extension();
  const bool is_fitting =
      features ? features_file(file).has_value() : has_any_name || (named && named->format == config.image.format);
  if (std::filesystem::is_directory(status) && !leads_to_folder) {
    throw ConfigError(is_fitting && is_to_fill
                          ? file + ": it is there already, and a folder isn't replaced"
                          : file + ": it is a folder; several slides go there with --out, and one to a file in it");
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !leads_to_folder) {
    throw ConfigError(file + ": it isn't a regular file");
  }
  if (!is_fitting && !features && !named && !features_file(file)) {
    throw ConfigError(file + ": its suffix names no format that is written; there are " + all_suffixes() +
                      ", and --out for a folder");
  }
  if (!is_fitting) {
    throw ConfigError(file + (features ? ": features go" : ": such an image goes") + " to a file that ends in " +
                      (features ? std::string(features_suffix) : suffixes_of(format)) + ", or to a folder (--out)");
  }
  if (!features) check_finished_name(file);
  if (slides.size() > 1) {
    throw ConfigError(file + ": one file holds one slide, and there are " + std::to_string(slides.size()) +
                      "; name a folder for them with --out");
  }
  if (std::filesystem::equivalent(path, slides.front(), code)) throw ConfigError(file + ": it is the slide itself");
  if (is_to_fill && is_link(path)) throw ConfigError(file + ": is a link, and a folder takes no link's place");
  check_unlisted_above(path);
  // Whose the description is, the page says.
  if (!features && format.format == ImageFormat::dzi) check_page_target(deep_zoom_page(path), PageOf::image, overwrite);
  check_target(path, overwrite);
  const std::string suffix = in_small_letters(path.filename().string().substr(output_name(file).size()));
  if (!overwrite && std::filesystem::exists(status) && !suffix.empty()) {
    const bool has_its_suffix = in_small_letters(slides.front()).ends_with(suffix);
    if (has_its_suffix || (!features && is_image_beside(slides.front(), file, format))) {
      throw ConfigError(file + ": is there already, and may be a slide that a pattern named, as " +
                        (has_its_suffix ? "its suffix is the slide's" : "the slide is an image of this program, too") +
                        "; --overwrite replaces it, and --out takes several slides");
    }
  }
  if (config.model.network) check_target(place_beside(file, output_name(file) + ".model.partial.csv"), overwrite);
  if (features) return;
  if (format.is_folder && std::filesystem::exists(status)) {
    throw ConfigError(file + ": it is there already, and isn't a folder");
  }
  if (*format.tiles_folder != '\0') check_tiles(path, tiles_of(path, format), overwrite);
  check_partial_names(path, format, slides.front(), overwrite);
}

}  // namespace slidestream::cli
