#pragma once

#include <filesystem>
#include <functional>
#include <string>

/// \file
/// Other files that OpenSlide opens for a slide. It opens them by name and waits: a FIFO would hold it for ever.

namespace slidestream::openslide {

/// What is wrong with the files that a slide's index names (of VMS and VMU itself, of MIRAX its Slidedat.ini), in a
/// line such as "names map.opt, which is a FIFO"; empty: nothing. Files that are missing are OpenSlide's to refuse.
/// Never waits for a FIFO's other end. \throws SlideError when an index can't be read
std::string fault_of_named_files(const std::filesystem::path& path);

/// The same of files beside a slide that OpenSlide looks for by itself: a Trestle slide's macro image, and all files
/// beside a DICOM file. `vendor`: what OpenSlide calls the slide, which may be null; asked only if it matters.
std::string fault_of_files_beside(const std::filesystem::path& path, const std::function<const char*()>& vendor);

}  // namespace slidestream::openslide
