#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

#include "image/mask.hpp"
#include "tiling/region_reader.hpp"

/// \file
/// Small pictures of whole slides.

namespace slidestream {

struct FoundTissue {
  std::shared_ptr<const Mask> mask;
  std::vector<std::string> doubts;  ///< a line each, without the slide's path
};

/// Where a slide's tissue is, as the operator `tissue` finds it with its default settings. Reads the small level.
/// \param remedy  how the pixel size is given, for `doubts` \throws SlideError
FoundTissue tissue_of(const Slide& slide, BadTilePolicy on_bad_tile, const std::string& remedy);

/// RGB, 8 bits per sample, rows without gaps.
struct Picture {
  Size size;
  std::vector<std::uint8_t> pixels;
};

/// The whole slide, scaled down to fit a box of `most` pixels, and never larger than level 0. Each side is at least a
/// pixel. Pixels are area means of the coarsest level that is not smaller. \param between  as in `RegionReader::read`
/// \throws ConfigError if the box is empty, or larger than 32768 x 32768; SlideError
Picture thumbnail(RegionReader& reader, const Slide& slide, const Size& most, BadTilePolicy on_bad_tile,
                  const std::function<void()>& between = {});

}  // namespace slidestream
