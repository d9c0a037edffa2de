#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>
#include <vector>

#include "image/mask.hpp"
#include "image/small_level.hpp"
#include "image/views.hpp"
#include "operators/tissue/tissue.hpp"

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

/// Makes a small level in the calling thread. Missing tiles are white. Memory: 3 bytes per pixel of it, and where it is
/// reduced a band of the level: a row of its tiles, or less where that is more than `band_pixels`. \throws SlideError
/// naming the tile on the first bad one, unless it may become white
SmallImage read_small_level(const Slide& slide, const SmallLevel& small, BadTilePolicy on_bad_tile,
                            std::int64_t band_pixels = max_small_level_pixels);

/// Who lets small levels into memory: of all slides of a run no more than fit. Each returns when the bytes are free,
/// and what it returns keeps them. Empty: there is no limit.
struct Admission {
  using Take = std::function<std::shared_ptr<const void>(std::uint64_t bytes)>;
  Take prepare;              ///< while a slide is prepared. \throws StoppedError when the run gives the slide up
  Take write;                ///< while its files are written; it may outlive the slide
  std::uint64_t beside = 0;  ///< bytes that operators take beside the small level and its mask
};

/// The most bytes that reading a slide's small level and finding its tissue take: 10 per pixel, of its colours, three
/// masks, and a table or the parts of components; or a band of the level that it is made of.
std::uint64_t preparation_bytes(const SlideInfo& info, const std::optional<double>& mpp);

/// A slide's small level and its mask, each read or found when it is first asked for. One thread at a time.
class Preparation {
 public:
  Preparation(const SlideContext& context, const Config& config, Admission admission = {});

  /// The one that all operators of a run share: `context.common`, which it becomes where there is none yet.
  static Preparation& of(const SlideContext& context, const Config& config);

  /// From the first call of what follows on it has the memory, as long as it lives.
  /// \throws SlideError
  const SmallImage& image();

  /// Where tissue is, as `tissue.source` says. \throws SlideError
  std::shared_ptr<const Mask> mask();

  /// The part of the mask that is tissue; none where no operator asked for it.
  const std::optional<double>& share() const noexcept { return share_; }

  /// Whether any operator asked.
  bool is_asked() const noexcept { return asked_; }
  const Admission& admission() const noexcept { return admission_; }

  /// Points and lines in the outlines that the mask was made of.
  std::size_t ignored() const noexcept { return ignored_; }

 private:
  void take_memory();

  const Slide& slide_;
  std::filesystem::path path_;
  std::optional<double> mpp_;
  TissueSource source_;
  TissueRule rule_;
  BadTilePolicy on_bad_tile_;
  SmallLevel small_;
  Admission admission_;
  std::shared_ptr<const void> memory_;  ///< freed behind what follows
  bool asked_ = false;
  std::optional<SmallImage> image_;
  std::shared_ptr<const Mask> mask_;
  std::optional<double> share_;
  std::size_t ignored_ = 0;
};

/// The mask of a slide's tissue, found by the first operator that asks for it. Reads the small level: call it on a
/// thread that may wait. \throws SlideError
std::shared_ptr<const Mask> prepare_mask(const SlideContext& context, const Config& config);

}  // namespace slidestream::operators
