#include "cli/own_marks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "output/views.hpp"
#include "sink/deep_zoom.hpp"
#include "sink/feature_file.hpp"
#include "sink/file_marks.hpp"
#include "sink/image_formats.hpp"
#include "sink/partial_folder.hpp"
#include "sink/stray_files.hpp"
#include "sink/view_page.hpp"
#include "volume/nifti_file.hpp"

namespace slidestream::cli {

namespace fs = std::filesystem;

namespace {

std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

/// A slide of `synth`, a map, or an image, whatever suffix of TIFF it has.
bool is_own_tiff(const fs::path& file) {
  const std::string text = tiff_description(file);
  return text.find("Title = slidestream synth") != std::string::npos ||
         text.starts_with("mean and standard deviation of every window") ||
         traits_of(ImageFormat::ome_tiff).is_own(file);
}

/// Anybody's page may have the title, and one about this program may quote the generator.
bool is_report(const fs::path& file) {
  constexpr std::size_t head = 4096;
  constexpr std::string_view begin =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" ";
  constexpr std::string_view generator = "\n<meta name=\"generator\" content=\"slidestream report\">\n";
  const std::string text = first_bytes_of(file, head);
  if (!text.starts_with(begin)) return false;
  const std::size_t line_end = text.find('\n', begin.size());
  return line_end != std::string::npos && std::string_view(text).substr(line_end).starts_with(generator);
}

bool is_own_page(const fs::path& file) { return is_report(file) || is_view_page(file); }

/// A trace, the file of progress, or totals. Strings in JSON have no line breaks, so that none reads as the versions.
bool is_own_json(const fs::path& file) {
  constexpr std::size_t most = std::size_t{1} << 20;
  const std::string text = first_bytes_of(file, most);
  return text.starts_with(R"({"displayTimeUnit":"ms","otherData":{"dropped_ranges":)") ||
         text.starts_with("{\n  \"version\": 1,\n  \"process\": {\n    \"host\": \"") ||
         (text.starts_with("{\n  \"settings\": {\n") &&
          text.find("\n  \"versions\": {\n    \"slidestream\": \"") != std::string::npos);
}

bool is_own_table(const fs::path& file) {
  constexpr std::size_t head = 256;
  const std::string text = first_bytes_of(file, head);
  constexpr std::array<std::string_view, 6> headers = {labels_header,
                                                       "path,status,error,",
                                                       "path,stage,tile,cause",
                                                       "path,operator,product,file,",
                                                       "date,version,host,processor,",
                                                       "tile,column,row,x,y,width,height,cause"};
  return std::ranges::any_of(headers, [&text](std::string_view header) { return text.starts_with(header); });
}

bool is_own_features(const fs::path& file) { return first_bytes_of(file, 4) == "\x89HDF" && is_features_file(file); }

/// What is no image. TIFF may be either.
struct Kind {
  std::string_view suffix;
  bool (*is_own)(const fs::path&);
  bool always_says_so = false;  ///< false: a file may be this program's and not say it
};

/// The head of a compressed volume says it.
bool is_own_volume(const fs::path& file) { return has_mark(file, volume::written_mark, 64); }

bool begins_with(const fs::path& file, std::string_view mark) { return first_bytes_of(file, mark.size()) == mark; }

bool is_own_metrics(const fs::path& file) { return begins_with(file, "# HELP slidestream_slides Slides of the run "); }
bool is_own_settings(const fs::path& file) { return begins_with(file, "# The fastest of "); }

constexpr std::array<Kind, 12> kinds = {{{".tif", is_own_tiff, true},
                                         {".tiff", is_own_tiff, true},
                                         {".btf", is_own_tiff, true},
                                         {".svs", is_own_tiff, true},
                                         {".nii.gz", is_own_volume, true},
                                         {".html", is_own_page},
                                         {".htm", is_own_page},
                                         {".json", is_own_json},
                                         {".csv", is_own_table, true},
                                         {".h5", is_own_features, true},
                                         {".prom", is_own_metrics},
                                         {".toml", is_own_settings}}};

const Kind* kind_of(const fs::path& path) {
  const std::string name = small_letters(path.filename().string());
  const auto* found = std::ranges::find_if(kinds, [&name](const Kind& kind) { return name.ends_with(kind.suffix); });
  return found == kinds.end() ? nullptr : &*found;
}

const ImageFormatTraits* image_format_of(const fs::path& path) {
  return format_named(small_letters(path.filename().string()));
}

/// Of the formats whose images are folders: what a folder is, its name doesn't say.
template <class Holds>
bool any_folder_format(const Holds& holds) {
  return std::ranges::any_of(image_formats(), [&](const auto& format) { return format.is_folder && holds(format); });
}

/// Whether a folder has a file that isn't empty, at any depth. Stray files and what was begun of a file don't count.
bool has_content(const fs::path& folder) {
  std::error_code code;
  fs::recursive_directory_iterator entry(folder, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    const fs::file_type type = type_at(entry->path());
    if (type == fs::file_type::directory || is_stray_file(*entry)) continue;
    if (type == fs::file_type::regular && is_empty_file(entry->path())) continue;
    if (entry.depth() == 0 && entry->path().filename().string().starts_with(unfinished_begin)) continue;
    return true;
  }
  return false;
}

/// A folder that isn't whole. The first format that knows its files in it decides.
bool is_own_partial_folder(const fs::path& folder) {
  for (const ImageFormatTraits& format : image_formats()) {
    if (!format.is_folder) continue;
    if (const std::optional<bool> is_own = format.is_own_begun(folder)) return *is_own;
  }
  return !is_lost_with(folder);
}

}  // namespace

fs::file_type type_at(const fs::path& path) {
  std::error_code code;
  const fs::file_type type = fs::symlink_status(path, code).type();
  return type == fs::file_type::none ? fs::file_type::not_found : type;
}

bool is_link(const fs::path& path) { return type_at(path) == fs::file_type::symlink; }

bool is_own(const fs::path& path) {
  if (is_empty_file(path)) return true;
  std::error_code code;
  if (fs::is_directory(path, code)) {
    return any_folder_format([&path](const auto& format) { return format.is_own(path); });
  }
  const ImageFormatTraits* const format = image_format_of(path);
  const Kind* const kind = kind_of(path);
  return (format != nullptr && format->is_own(path)) || (kind != nullptr && kind->is_own(path));
}

NamedKind named_kind(const fs::path& path) {
  if (const ImageFormatTraits* const format = image_format_of(path)) {
    // Whose a Deep Zoom image is, its page says, which may be missing.
    const bool is_deep_zoom = format->format == ImageFormat::dzi;
    return {.is_folder = format->is_folder, .is_deep_zoom = is_deep_zoom, .always_says_so = !is_deep_zoom};
  }
  const Kind* const kind = kind_of(path);
  if (kind == nullptr) return {};
  return {.is_table = kind->is_own == is_own_table, .always_says_so = kind->always_says_so};
}

bool is_own_image(const fs::path& slide) {
  std::error_code code;
  // Opening a FIFO would wait for its other end.
  if (!fs::is_regular_file(slide, code)) return false;
  return std::ranges::any_of(image_formats(), [&slide](const ImageFormatTraits& format) {
    return format.is_own_slide != nullptr && format.is_own_slide(slide);
  });
}

bool holds_image(const fs::path& folder) {
  std::error_code code;
  const auto is_there = [&](std::string_view name) { return fs::is_regular_file(folder / name, code); };
  return any_folder_format([&](const auto& format) { return std::ranges::any_of(format.files, is_there); });
}

bool holds_own_image(const fs::path& folder) {
  if (!named_kind(folder).is_folder && !holds_image(folder)) return false;
  return any_folder_format([&folder](const auto& format) { return format.has_own_part(folder); });
}

bool is_lost_with(const fs::path& folder) {
  return type_at(folder) == fs::file_type::directory && has_content(folder) && may_be_image_folder(folder);
}

std::optional<fs::path> foreign_partial(const fs::path& partial) {
  if (named_kind(partial).is_deep_zoom) return foreign_part_of_deep_zoom(partial);
  const ImageFormatTraits* const format = image_format_of(partial);
  const bool is_folder = format != nullptr ? format->is_folder : kind_of(partial) == nullptr;
  const fs::file_type type = type_at(partial);
  bool is_own = type == fs::file_type::not_found || is_folder != (type == fs::file_type::directory);
  if (type == fs::file_type::directory) is_own = is_own || is_own_partial_folder(partial);
  if (type == fs::file_type::regular) {
    is_own = is_own || is_empty_file(partial) || (format != nullptr && format->is_own(partial));
  }
  return is_own ? std::nullopt : std::optional(partial);
}

bool is_begun(const fs::path& partial) {
  std::vector<fs::path> parts = {partial};
  if (named_kind(partial).is_deep_zoom) {
    parts.push_back(deep_zoom_page(partial));
    parts.push_back(deep_zoom_tiles(partial));
  }
  return std::ranges::any_of(parts, [](const fs::path& part) {
    const fs::file_type type = type_at(part);
    return (type == fs::file_type::regular && !is_empty_file(part)) ||
           (type == fs::file_type::directory && has_content(part));
  });
}

}  // namespace slidestream::cli
