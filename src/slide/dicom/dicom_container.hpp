#pragma once

#include <filesystem>
#include <memory>
#include <span>

#include "slide/slide_impl.hpp"

namespace slidestream {

/// By "DICM" at byte 128.
bool is_dicom(std::span<const std::byte> first, const File& file);

/// Opens the series that a file belongs to: whole-slide images of DICOM (PS3.3, A.32.8). Levels are the instances of
/// flavour VOLUME; labels, overviews and thumbnails are associated images; others are passed over.
void open_dicom(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options);

}  // namespace slidestream
