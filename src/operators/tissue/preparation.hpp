#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>
#include <vector>

#include "image/mask.hpp"
#include "image/small_level.hpp"
#include "image/views.hpp"

/// \file
/// What operators find out about a slide before its pixels pass by, each of it once: its small level and where tissue
/// is.

namespace slidestream::operators {

/// A whole small level in RGB, host memory.
struct SmallImage {
  Size size;
  std::vector<std::byte> pixels;

  ConstHostView view() const noexcept {
    return {pixels.data(), size.width * 3, {0, 0, size.width, size.height}, size, rgb_format};
  }
};

/// Reads a small level in the calling thread, and reduces it on the way where it is to be. Missing tiles are white.
/// Memory: 3 bytes a pixel of it, and where it is reduced a band of the level: a row of its tiles, or less where that
/// is more than `band_pixels`. \throws SlideError naming the tile on the first bad one, unless it may become white
SmallImage read_small_level(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                            std::int64_t band_pixels = max_small_level_pixels);

/// A slide's small level and its mask, each read or found when it is first asked for. One thread at a time.
class Preparation {
 public:
  Preparation(const SlideContext& context, const Config& config);

  /// The one that all operators of a run share: `context.common`, which it becomes where there is none yet.
  static Preparation& of(const SlideContext& context, const Config& config);

  /// \throws SlideError
  const SmallImage& image();

  /// Where tissue is, as `tissue.source` says. \throws SlideError
  std::shared_ptr<const Mask> mask();

 private:
  const Slide& slide_;
  std::filesystem::path path_;
  std::optional<double> mpp_;
  TissueSource source_;
  BadTilePolicy on_bad_tile_;
  SmallLevel small_;
  std::optional<SmallImage> image_;
  std::shared_ptr<const Mask> mask_;
};

/// The mask of a slide's tissue, found by the first operator that asks for it. Reads the small level: call it on a
/// thread that may wait. \throws SlideError
std::shared_ptr<const Mask> prepare_mask(const SlideContext& context, const Config& config);

}  // namespace slidestream::operators
