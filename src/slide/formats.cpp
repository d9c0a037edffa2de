#include "slide/formats.hpp"

#include <algorithm>
#include <array>
#include <slidestream/error.hpp>

#include "slide/dicom/dicom_container.hpp"
#include "slide/dicom/series.hpp"
#include "slide/openslide/kinds.hpp"
#include "slide/openslide/openslide_container.hpp"
#include "slide/tiff/tiff_container.hpp"

namespace slidestream {

namespace {

constexpr std::array<std::string_view, 4> tiff_suffixes = {".svs", ".tif", ".tiff", ".btf"};
constexpr std::array<std::string_view, 1> dicom_suffixes = {".dcm"};
constexpr std::array<std::string_view, 8> openslide_suffixes = {".mrxs", ".ndpi", ".vms",     ".vmu",
                                                                ".scn",  ".bif",  ".svslide", ".czi"};

constexpr SlideFormat by_openslide = {.name = "openslide",
                                      .suffixes = openslide_suffixes,
                                      .recognises = is_for_openslide,
                                      .open = open_by_openslide,
                                      .files = openslide::files_of,
                                      .keeps_folder = openslide::is_data_folder};

constexpr std::array formats = {
    SlideFormat{"dicom", dicom_suffixes, is_dicom, open_dicom, dicom::files_of_series, dicom::series_in_folder},
    by_openslide,
    SlideFormat{"tiff", tiff_suffixes, is_tiff, open_tiff},
};

bool is_named_as(const SlideFormat& format, std::string_view path) {
  return std::ranges::any_of(format.suffixes, [path](std::string_view suffix) { return has_suffix(path, suffix); });
}

}  // namespace

std::span<const SlideFormat> slide_formats() noexcept { return formats; }

const SlideFormat& format_of(const File& file) {
  std::array<std::byte, first_bytes> first;
  const std::size_t read = file.read_some(0, first);
  const auto found = std::ranges::find_if(
      formats, [&](const SlideFormat& format) { return format.recognises(std::span(first).first(read), file); });
  if (found != formats.end()) return *found;
  // Its reader says why it isn't what its name says.
  const SlideFormat& dicom = formats.front();
  return is_named_as(dicom, file.path().string()) ? dicom : by_openslide;
}

bool has_suffix(std::string_view path, std::string_view suffix) {
  if (path.size() < suffix.size()) return false;
  return std::ranges::equal(path.substr(path.size() - suffix.size()), suffix, [](char have, char want) {
    return (have >= 'A' && have <= 'Z' ? static_cast<char>(have - 'A' + 'a') : have) == want;
  });
}

bool is_part_of_slide(const std::filesystem::path& folder) {
  return std::ranges::any_of(formats, [&](const SlideFormat& format) {
    return format.keeps_folder != nullptr && format.keeps_folder(folder);
  });
}

bool has_slide_suffix(std::string_view path) {
  return std::ranges::any_of(formats, [path](const SlideFormat& format) { return is_named_as(format, path); });
}

std::filesystem::path file_to_open(const std::filesystem::path& path) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) return path;
  std::vector<std::string> slides;
  for (const SlideFormat& format : formats) {
    if (format.in_folder == nullptr) continue;
    const SlidesInFolder found = format.in_folder(path);
    slides.insert(slides.end(), found.slides.begin(), found.slides.end());
  }
  if (slides.size() > 1) {
    throw_slide_error(path, "a folder with " + std::to_string(slides.size()) + " slides; name a file of one of them");
  }
  return slides.empty() ? path : path / slides.front();
}

std::vector<std::filesystem::path> files_of_slide(const std::filesystem::path& path) {
  const std::string name = path.string();
  const auto is_alone = [&](const SlideFormat& format) { return format.files == nullptr && is_named_as(format, name); };
  if (std::ranges::any_of(formats, is_alone)) return {path};
  try {
    const SlideFormat& format = format_of(File(path));
    if (format.files != nullptr) return format.files(path);
  } catch (const DescriptorError&) {
    throw;
  } catch (const SlideError&) {
    // The opening says it.
  }
  return {path};
}

}  // namespace slidestream
