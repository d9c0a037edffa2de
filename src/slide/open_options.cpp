#include "slide/open_options.hpp"

namespace slidestream {

OpenOptions open_options(const Config& config, const std::string& path) {
  const InputConfig& input = config.input;
  const auto of_slide = input.slide_mpp.find(path);
  return {.max_pixels = input.max_pixels,
          .max_tiles = input.max_tiles,
          .retries = input.retries,
          .mpp = of_slide == input.slide_mpp.end() ? input.mpp : of_slide->second,
          .mpp_is_listed = of_slide != input.slide_mpp.end(),
          .mpp_default = input.mpp_default,
          .channel = input.channel,
          .openslide = input.openslide,
          .to_srgb = config.converts_colours(),
          .srgb_for_browsers = input.colour == InputColour::automatic,
          .shrink_on_load = config.image.copy_levels == CopyLevels::shrink_on_load};
}

}  // namespace slidestream
