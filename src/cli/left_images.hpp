#pragma once

#include <filesystem>
#include <slidestream/config.hpp>

#include "ledger/ledger.hpp"

namespace slidestream::cli {

/// Removes what is left of unfinished images of the configuration's operators and format, and lists of the tiles that
/// they lack: of slides that this start doesn't try, or of those whose results aren't kept. What this program didn't
/// make stays, as does what somebody writes, or has put into an image's folder. A whole image that lost its name while
/// another one took its place gets it back. Warns of what can't be removed.
void remove_left_images(const Config& config, const Ledger::LeftSlides& slides) noexcept;

/// The same of the one image of a run into a file. \param list  of the tiles that it lacks
void remove_left_image(const std::filesystem::path& file, const std::filesystem::path& list) noexcept;

}  // namespace slidestream::cli
