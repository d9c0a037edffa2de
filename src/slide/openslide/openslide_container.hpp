#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "slide/slide_impl.hpp"

namespace slidestream {

/// Whether only OpenSlide reads the file, as far as that is known without it.
bool is_for_openslide(std::span<const std::byte> first, const File& file);

/// Opens a slide through OpenSlide (`OpenOptions::openslide`). What neither it nor `is_for_openslide` recognises goes
/// to the reader of TIFF, which says what is wrong. \throws SlideError for a TIFF file that OpenSlide must read and
/// doesn't recognise
void open_by_openslide(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options);

}  // namespace slidestream
