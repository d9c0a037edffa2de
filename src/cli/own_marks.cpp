#include "cli/own_marks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/tiff_description.hpp"
#include "output/views.hpp"
#include "sink/deep_zoom.hpp"
#include "sink/feature_file.hpp"
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

/// The first bytes of a file; fewer where it ends or can't be read.
std::string first_bytes(const fs::path& file, std::size_t most) {
  std::error_code code;
  // Opening a FIFO would wait for its other end.
  if (!fs::is_regular_file(file, code)) return {};
  std::ifstream in(file, std::ios::binary);
  std::string bytes(most, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return bytes;
}

constexpr std::string_view image_mark = "Creator=\"slidestream ";

bool is_own_tiff(const fs::path& file) {
  const std::string text = tiff_description(file);
  return text.find(image_mark) != std::string::npos || text.find("Title = slidestream synth") != std::string::npos ||
         text.starts_with("mean and standard deviation of every window");
}

/// Anybody's page may have the title, and one about this program may quote the generator.
bool is_report(const fs::path& file) {
  constexpr std::size_t head = 4096;
  constexpr std::string_view begin =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" ";
  constexpr std::string_view generator = "\n<meta name=\"generator\" content=\"slidestream report\">\n";
  const std::string text = first_bytes(file, head);
  if (!text.starts_with(begin)) return false;
  const std::size_t line_end = text.find('\n', begin.size());
  return line_end != std::string::npos && std::string_view(text).substr(line_end).starts_with(generator);
}

bool is_own_page(const fs::path& file) { return is_report(file) || is_view_page(file); }

bool is_own_deep_zoom(const fs::path& file) {
  const fs::path page = deep_zoom_page(file);
  std::error_code code;
  return (fs::exists(page, code) && is_view_page(page)) || has_all_names_but_the_page(file);
}

/// A trace, the file of progress, or totals. Strings in JSON have no line breaks, so that none reads as the versions.
bool is_own_json(const fs::path& file) {
  constexpr std::size_t most = std::size_t{1} << 20;
  const std::string text = first_bytes(file, most);
  return text.starts_with(R"({"displayTimeUnit":"ms","otherData":{"dropped_ranges":)") ||
         text.starts_with("{\n  \"version\": 1,\n  \"process\": {\n    \"host\": \"") ||
         (text.starts_with("{\n  \"settings\": {\n") &&
          text.find("\n  \"versions\": {\n    \"slidestream\": \"") != std::string::npos);
}

bool is_own_table(const fs::path& file) {
  constexpr std::size_t head = 256;
  const std::string text = first_bytes(file, head);
  constexpr std::array<std::string_view, 6> headers = {labels_header,
                                                       "path,status,error,",
                                                       "path,stage,tile,cause",
                                                       "path,operator,product,file,",
                                                       "date,version,host,processor,",
                                                       "tile,column,row,x,y,width,height,cause"};
  return std::ranges::any_of(headers, [&text](std::string_view header) { return text.starts_with(header); });
}

bool is_own_features(const fs::path& file) { return first_bytes(file, 4) == "\x89HDF" && is_features_file(file); }

bool holds(const fs::path& file, std::string_view mark) {
  constexpr std::size_t most = std::size_t{1} << 20;
  return first_bytes(file, most).find(mark) != std::string::npos;
}

constexpr std::string_view zarr_mark = "\"slidestream\":";

bool has_zarr_mark(const fs::path& folder) {
  return holds(folder / ".zattrs", zarr_mark) || holds(folder / "zarr.json", zarr_mark);
}

/// The DICOM files of a folder, without stray and empty ones, until one of them is refused. Returns whether none is.
bool all_instances(const fs::path& folder, const std::function<bool(const fs::path&)>& accepts) {
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator(); entry.increment(code)) {
    if (entry->path().extension() != ".dcm" || is_stray_file(*entry) || is_empty_file(entry->path())) continue;
    if (!accepts(entry->path())) return false;
  }
  return true;
}

/// How many DICOM files with something in them a folder has; nothing where one isn't this program's.
std::optional<std::size_t> own_instances(const fs::path& folder) {
  std::size_t instances = 0;
  const bool all = all_instances(folder, [&instances](const fs::path& file) {
    ++instances;
    return holds(file, "slidestream");
  });
  return all ? std::optional(instances) : std::nullopt;
}

/// Of DICOM each instance says it.
bool is_own_folder(const fs::path& folder) { return has_zarr_mark(folder) || own_instances(folder).value_or(0) > 0; }

/// By SoftwareVersions, which lies before everything that is large.
bool is_own_instance(const fs::path& file) {
  constexpr std::size_t head = 8192;
  constexpr std::string_view software("\x18\0\x20\x10LO", 6);
  constexpr std::size_t length_bytes = 2;
  const std::string bytes = first_bytes(file, head);
  const std::size_t at = bytes.find(software);
  return at != std::string::npos && at + software.size() + length_bytes <= bytes.size() &&
         std::string_view(bytes).substr(at + software.size() + length_bytes).starts_with("slidestream ");
}

struct Kind {
  std::string_view suffix;
  bool (*is_own)(const fs::path&);
  bool always_says_so = false;  ///< false: a file may be this program's and not say it
};

/// The head of a compressed volume says it.
bool is_own_volume(const fs::path& file) {
  constexpr std::size_t head = 64;
  return first_bytes(file, head).find(volume::written_mark) != std::string::npos;
}

bool begins_with(const fs::path& file, std::string_view mark) { return first_bytes(file, mark.size()) == mark; }

bool is_own_metrics(const fs::path& file) { return begins_with(file, "# HELP slidestream_slides Slides of the run "); }
bool is_own_settings(const fs::path& file) { return begins_with(file, "# The fastest of "); }

constexpr std::array<Kind, 15> kinds = {{{".tif", is_own_tiff, true},
                                         {".tiff", is_own_tiff, true},
                                         {".btf", is_own_tiff, true},
                                         {".svs", is_own_tiff, true},
                                         {".nii.gz", is_own_volume, true},
                                         {".html", is_own_page},
                                         {".htm", is_own_page},
                                         {".dzi", is_own_deep_zoom},
                                         {".json", is_own_json},
                                         {".csv", is_own_table, true},
                                         {".h5", is_own_features, true},
                                         {".prom", is_own_metrics},
                                         {".toml", is_own_settings},
                                         {".zarr", is_own_folder, true},
                                         {".dicom", is_own_folder, true}}};

const Kind* kind_of(const fs::path& path) {
  const std::string name = small_letters(path.filename().string());
  const auto* found = std::ranges::find_if(kinds, [&name](const Kind& kind) { return name.ends_with(kind.suffix); });
  return found == kinds.end() ? nullptr : &*found;
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

/// A folder that isn't whole: the attributes come first, and of DICOM each instance has the mark.
bool is_own_partial_folder(const fs::path& folder) {
  for (const char* attributes : {".zattrs", "zarr.json"}) {
    const fs::path file = folder / attributes;
    if (type_at(file) != fs::file_type::not_found) return is_empty_file(file) || holds(file, zarr_mark);
  }
  const std::optional<std::size_t> instances = own_instances(folder);
  return instances && (*instances > 0 || !is_lost_with(folder));
}

/// Whether a folder has files or folders besides those whose names begin with a dot.
bool has_tiles(const fs::path& folder) {
  std::error_code code;
  for (fs::directory_iterator entry(folder, code); !code && entry != fs::directory_iterator(); entry.increment(code)) {
    if (!entry->path().filename().string().starts_with('.') && !is_stray_file(*entry)) return true;
  }
  return false;
}

/// Of an image that isn't whole, what is another program's. Whatever there is of a Deep Zoom image, its page is there.
std::optional<fs::path> foreign_part_of_deep_zoom(const fs::path& file) {
  const fs::path page = deep_zoom_page(file);
  if (type_at(page) != fs::file_type::not_found) return is_view_page(page) ? std::nullopt : std::optional(page);
  if (type_at(file) != fs::file_type::not_found && !is_empty_file(file)) return file;
  const fs::path tiles = deep_zoom_tiles(file);
  return has_tiles(tiles) ? std::optional(tiles) : std::nullopt;
}

}  // namespace

fs::file_type type_at(const fs::path& path) {
  std::error_code code;
  const fs::file_type type = fs::symlink_status(path, code).type();
  return type == fs::file_type::none ? fs::file_type::not_found : type;
}

bool is_link(const fs::path& path) { return type_at(path) == fs::file_type::symlink; }

bool is_empty_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code) && fs::file_size(path, code) == 0;
}

bool is_own(const fs::path& path) {
  if (is_empty_file(path)) return true;
  const Kind* const kind = kind_of(path);
  std::error_code code;
  if (fs::is_directory(path, code)) return is_own_folder(path);
  return kind != nullptr && kind->is_own(path);
}

NamedKind named_kind(const fs::path& path) {
  const Kind* const kind = kind_of(path);
  if (kind == nullptr) return {};
  return {kind->is_own == is_own_folder, kind->is_own == is_own_deep_zoom, kind->is_own == is_own_table,
          kind->always_says_so};
}

bool is_own_image(const fs::path& slide) {
  std::error_code code;
  // Opening a FIFO would wait for its other end.
  if (!fs::is_regular_file(slide, code)) return false;
  return tiff_description(slide).find(image_mark) != std::string::npos || is_own_instance(slide);
}

bool holds_image(const fs::path& folder) {
  std::error_code code;
  return std::ranges::any_of(std::array{".zattrs", ".zgroup", "zarr.json", "level-0.dcm"},
                             [&](const char* name) { return fs::is_regular_file(folder / name, code); });
}

bool holds_own_image(const fs::path& folder) {
  if (!named_kind(folder).is_folder && !holds_image(folder)) return false;
  // Manufacturer and SoftwareVersions lie before everything that is large.
  constexpr std::size_t head = std::size_t{1} << 16;
  return has_zarr_mark(folder) || !all_instances(folder, [](const fs::path& file) {
           return first_bytes(file, head).find("slidestream") == std::string::npos;
         });
}

bool is_lost_with(const fs::path& folder) {
  return type_at(folder) == fs::file_type::directory && has_content(folder) && may_be_image_folder(folder);
}

std::optional<fs::path> foreign_partial(const fs::path& partial) {
  const Kind* const kind = kind_of(partial);
  if (kind != nullptr && kind->is_own == is_own_deep_zoom) return foreign_part_of_deep_zoom(partial);
  const bool is_folder = kind == nullptr || kind->is_own == is_own_folder;
  const fs::file_type type = type_at(partial);
  bool is_own = type == fs::file_type::not_found || is_folder != (type == fs::file_type::directory);
  if (type == fs::file_type::directory) is_own = is_own || is_own_partial_folder(partial);
  if (type == fs::file_type::regular) {
    is_own = is_own || is_empty_file(partial) || tiff_description(partial).find(image_mark) != std::string::npos;
  }
  return is_own ? std::nullopt : std::optional(partial);
}

bool is_begun(const fs::path& partial) {
  const Kind* const kind = kind_of(partial);
  std::vector<fs::path> parts = {partial};
  if (kind != nullptr && kind->is_own == is_own_deep_zoom) {
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
