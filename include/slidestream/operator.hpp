#pragma once

#include <slidestream/image.hpp>

/// \file
/// What is computed from the pixels of slides.

namespace slidestream {

/// The pixels that an operator's outputs are made from, and all that the planner knows of it. Output (x, y) is made
/// from the window that begins at pixel (x step.width, y step.height) and from a halo around it, which is mirrored in
/// some way where the image ends. An operator that makes an image has windows of one pixel.
struct Footprint {
  Size window = {1, 1};  ///< pixels
  Size step = {1, 1};    ///< pixels from an output to the next
  Border halo;           ///< pixels around the window that are read as well

  /// Outputs of an image: as many windows as lie inside it.
  constexpr Size outputs(const Size& image) const noexcept {
    return {image.width < window.width ? 0 : (image.width - window.width) / step.width + 1,
            image.height < window.height ? 0 : (image.height - window.height) / step.height + 1};
  }
};

}  // namespace slidestream
