#include "slide/dicom/series.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <tuple>

#include "slide/dicom/folder_heads.hpp"

namespace slidestream::dicom {

namespace {

namespace fs = std::filesystem;

/// What a file says, as the listing of its folder has it, or read anew.
SeriesFile named_file(const fs::path& path, const FolderHeads& held, const std::function<bool()>& give_up) {
  const Head* head = held.find(path.filename().string());
  std::optional<SeriesFile> named;
  if (head != nullptr && head->is_settled && head->file && stamp_of(path) == head->stamp) {
    named = head->file;
  } else {
    named = read_head(path, give_up);
  }
  if (!named) throw_slide_error(path, "SOPClassUID (0008,0016) isn't that of whole-slide images");
  named->path = path;
  return *named;
}

/// First the one that the slide is called by, then the others by name.
void put_in_order(std::vector<SeriesFile>& files) {
  const auto is_before = [](const SeriesFile& a, const SeriesFile& b) {
    return std::tuple(a.pixels == 0, a.shows_label, b.pixels, a.frames_before, a.path) <
           std::tuple(b.pixels == 0, b.shows_label, a.pixels, b.frames_before, b.path);
  };
  std::ranges::sort(files, is_before);
  std::ranges::sort(files.begin() + 1, files.end(), {}, &SeriesFile::path);
}

void rethrow_shortage(const std::exception_ptr& fault) {
  try {
    std::rethrow_exception(fault);
  } catch (const DescriptorError&) {
    throw;
  } catch (const StorageError&) {
    // The slide itself says it.
  }
}

}  // namespace

Series series_of(const fs::path& path, const std::function<bool()>& give_up) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::shared_ptr<const FolderHeads> held = heads_of(folder, give_up);
  SeriesFile named = named_file(path, *held, give_up);
  // What couldn't be looked at may be a level of the slide.
  if (held->fault != nullptr) std::rethrow_exception(held->fault);
  Series found;
  std::vector<SeriesFile>& files = found.files;
  for (const auto& [name, head] : held->heads) {
    if (head.is_unreadable) found.unreadable.push_back(name);
    if (!head.file || head.file->series != named.series || name == path.filename()) continue;
    SeriesFile& file = files.emplace_back(*head.file);
    if (path.has_parent_path()) file.path = folder / file.path;
  }
  files.push_back(std::move(named));
  put_in_order(files);
  return found;
}

std::vector<fs::path> files_of_series(const fs::path& path) {
  std::vector<fs::path> paths;
  for (const SeriesFile& file : series_of(path, {}).files) {
    if (file.pixels > 0) paths.push_back(file.path);
  }
  if (paths.empty()) throw_slide_error(path, "its series has no image of flavour VOLUME (ImageType (0008,0008))");
  return paths;
}

SlidesInFolder series_in_folder(const fs::path& folder) {
  const std::shared_ptr<const FolderHeads> held = heads_of(folder, {});
  // A file that isn't known to be of a series would be taken for a slide of its own.
  if (held->fault != nullptr) rethrow_shortage(held->fault);
  SlidesInFolder found;
  std::map<std::string, std::vector<SeriesFile>> by_series;
  for (const auto& [name, head] : held->heads) {
    found.files.insert(name);
    if (head.file) by_series[head.file->series].push_back(*head.file);
    if (head.is_unreadable) found.slides.push_back(name);
    if (head.is_no_slide) found.no_slides.push_back(name);
  }
  for (auto& [uid, files] : by_series) {
    put_in_order(files);
    found.slides.push_back(files.front().path.string());
  }
  return found;
}

}  // namespace slidestream::dicom
