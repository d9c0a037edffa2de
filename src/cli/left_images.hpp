#pragma once

#include <slidestream/config.hpp>

#include "ledger/ledger.hpp"

namespace slidestream::cli {

/// Removes what killed processes left of images of the configuration's operators and format, of slides that this start
/// doesn't try. What this program didn't make stays, as does what somebody writes, or has put into an image's folder. A
/// whole image that lost its name while another one took its place gets it back. Warns of what can't be removed.
void remove_left_images(const Config& config, const Ledger::LeftSlides& slides) noexcept;

}  // namespace slidestream::cli
