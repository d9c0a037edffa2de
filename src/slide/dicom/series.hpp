#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "slide/formats.hpp"

namespace slidestream::dicom {

/// A file of a series of whole-slide images, and what of it decides which one the slide is called by.
struct SeriesFile {
  std::filesystem::path path;
  std::string series;
  std::uint64_t pixels = 0;  ///< of the image; 0: it is no level
  bool shows_label = false;  ///< beside one that doesn't it is no level
  std::int64_t frames_before = 0;

  bool operator==(const SeriesFile&) const = default;
};

struct Series {
  std::vector<SeriesFile> files;
  std::vector<std::string> unreadable;  ///< names in the folder that end in .dcm and can't be read: of any series
};

/// The files of the series that a file belongs to, all in its folder: the one that the slide is called by (the largest
/// level, of those that don't show the label if there are any, of several parts the first, then by name) and then the
/// others by name. `heads_of` says what is remembered. \param give_up  as `OpenOptions::give_up`. \throws SlideError
/// when the file itself is no whole-slide image. \throws StorageError when the storage keeps a file of the folder from
/// being looked at, for less than 2 s
Series series_of(const std::filesystem::path& path, const std::function<bool()>& give_up);

/// `SlideFormat::files`: of the series, without images that are no levels.
std::vector<std::filesystem::path> files_of_series(const std::filesystem::path& path);

/// `SlideFormat::in_folder`. A file that ends in .dcm and can't be read fails as a slide. One of another class, such as
/// a segmentation, is none. \throws DescriptorError
SlidesInFolder series_in_folder(const std::filesystem::path& folder);

}  // namespace slidestream::dicom
