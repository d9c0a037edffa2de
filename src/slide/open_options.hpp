#pragma once

#include <slidestream/config.hpp>
#include <slidestream/slide.hpp>
#include <string>

namespace slidestream {

/// How the slides of a run are opened: what `[input]` and `image.copy_levels` say, and the pixel size of this slide.
OpenOptions open_options(const Config& config, const std::string& path);

}  // namespace slidestream
