#pragma once

#include <filesystem>

#include "ledger/ledger.hpp"

namespace slidestream::cli {

/// Removes what killed processes left of images of slides that this start doesn't try. What this program didn't make
/// stays, as does what somebody writes, or has put into an image's folder. A whole image that lost its name while
/// another one took its place gets it back. Warns of what can't be removed. \param folder  of the results
void remove_left_images(const std::filesystem::path& folder, const Ledger::LeftSlides& slides) noexcept;

}  // namespace slidestream::cli
