#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/network.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <utility>
#include <vector>

#include "image/mask.hpp"
#include "image/small_level.hpp"
#include "operators/tissue/geojson.hpp"
#include "operators/tissue/small_image.hpp"

/// \file
/// What operators find out about a slide before its pixels pass by, each of it once: its small level and where tissue
/// is.

namespace slidestream::operators {

/// Who lets small levels into memory: of all slides of a run no more than fit. Each returns when the bytes are free,
/// and what it returns keeps them. Empty: there is no limit.
struct Admission {
  using Take = std::function<std::shared_ptr<const void>(std::uint64_t bytes)>;
  Take prepare;              ///< while a slide is prepared. \throws StoppedError when the run gives the slide up
  Take write;                ///< while its files are written; it may outlive the slide
  std::uint64_t beside = 0;  ///< bytes that operators take beside the small level and its mask
  /// Whether the slide is given up, asked by any thread while a network finds its tissue or outlines are drawn. Empty:
  /// never.
  std::function<bool()> given_up;
  /// Whether the run ends, asked by any thread while it looks at a slide that several need. Empty: never.
  std::function<bool()> stopped;
  std::shared_ptr<DecodeMemory> decode_memory;  ///< of that slide, as `OpenOptions` has it
  /// Takes time of the preparation that isn't the slide's own. May be empty.
  std::function<void(std::chrono::nanoseconds)> waited;
};

/// The most bytes that reading a slide's small level and finding its tissue take: 10 per pixel, of its colours, three
/// masks, and a table or the parts of components; or 3 per pixel, and a band of the level that it is made of, or of the
/// next larger one. Buffers of 1 MiB come on top.
/// With a network that finds tissue what its tiles take besides. \param most_network_bytes  that these may take \param
/// network  of `tissue.model`, or null \throws Error where the network can't look at the slide
std::uint64_t preparation_bytes(const SlideInfo& info, std::uint64_t most_network_bytes, const Network* network);

/// Tiles of a level that small images are made from, and that count as glass there.
struct TilesAsGlass {
  std::int64_t lost = 0;  ///< `count_lost_tiles`
  std::int64_t bad = 0;   ///< that became white
};

/// A slide's small level and its mask, each read or found when it is first asked for. One thread at a time.
class Preparation {
 public:
  /// \param network  of `tissue.model`; null where that is empty, or nobody will ask for the mask
  Preparation(const SlideContext& context, const Config& config, Admission admission = {},
              std::shared_ptr<const Network> network = nullptr);

  /// The one that all operators of a run share: `context.common`, which it becomes where there is none yet. It opens
  /// the network of `tissue.model` then. \param admission  of one that it creates \throws ConfigError where that can't
  /// be opened
  static Preparation& of(const SlideContext& context, const Config& config, Admission admission = {});

  /// From the first call of what follows on it has the memory, as long as it lives.
  ///
  /// The small level. If the slide's own level has lost parts of its picture (`has_lost_blocks`), it is made from the
  /// next larger level, with a doubt. So it is from when `mask` finds no tissue on a level that is mostly of one
  /// colour. \throws SlideError
  const SmallImage& image();

  /// Where tissue is, as `tissue.source` and `tissue.model` say. \throws SlideError; Error where the network can't look
  /// at the slide, or fails
  std::shared_ptr<const Mask> mask();

  /// The part of the mask that is tissue; none where no operator asked for it.
  const std::optional<double>& share() const noexcept { return share_; }

  /// The part of the small level that is ink, without the edges of strokes; 0 where the mask isn't found by colour.
  double ink_share() const noexcept { return ink_share_; }

  /// Takes a doubt about the slide that an operator has, as one line; empty: it has none.
  void doubt(std::string line) {
    if (!line.empty()) doubts_.push_back(std::move(line));
  }
  const std::vector<std::string>& doubts() const noexcept { return doubts_; }

  /// By number, the levels that the small level and the mask were made from. Blocks that stains are fitted to don't
  /// count.
  const std::map<std::size_t, TilesAsGlass>& tiles_as_glass() const noexcept { return tiles_as_glass_; }

  /// Whether any operator asked.
  bool is_asked() const noexcept { return asked_; }
  const Admission& admission() const noexcept { return admission_; }

  /// What was passed over in the outlines that the mask was made of.
  const PassedOver& passed_over() const noexcept { return passed_over_; }

 private:
  void take_memory();
  Mask make_mask();
  Mask find_by_colours();
  void read_larger();
  void note_tiles(std::size_t level, std::int64_t bad);

  const Slide& slide_;
  std::filesystem::path path_;
  std::optional<double> mpp_;
  TissueConfig tissue_;
  BadTilePolicy on_bad_tile_;
  std::uint64_t most_network_bytes_;
  SmallLevel small_;
  Admission admission_;
  std::shared_ptr<const Network> network_;
  std::shared_ptr<const void> memory_;  ///< freed behind what follows
  bool asked_ = false;
  std::optional<SmallImage> image_;
  std::optional<SmallLevel> larger_;  ///< what the image is made from if it shows no tissue
  std::shared_ptr<const Mask> mask_;
  std::optional<double> share_;
  double ink_share_ = 0.0;
  std::vector<std::string> doubts_;
  std::map<std::size_t, TilesAsGlass> tiles_as_glass_;
  PassedOver passed_over_;
};

/// The mask of a slide's tissue, found by the first operator that asks for it. Reads the small level: call it on a
/// thread that may wait. \throws SlideError
std::shared_ptr<const Mask> prepare_mask(const SlideContext& context, const Config& config);

/// Says that tissue is found by other rules where the slide doesn't say its pixel size. \param fits_stains  stains are
/// fitted, too \param remedy  how the pixel size is given
std::string doubt_of_pixel_size(bool fits_stains, const std::string& remedy);

/// Says that a slide has no tissue, or suspiciously much. Empty for a usual share. \param keys  that change the mask;
/// empty where the caller can't set any
std::string doubt_of_share(double share, const std::string& keys);

/// Says that so much was left out as ink, where that is a tenth or more of it and the tissue. Empty where it is less.
std::string doubt_of_ink(double ink_share, double tissue_share);

/// Says that bad tiles of a level, from which the mask is made, are white. Empty where there are none.
std::string doubt_of_bad_tiles(std::size_t level, std::int64_t bad);

/// Says that another level is looked at, as the small one has lost its picture. \param has_network  which finds tissue
std::string doubt_of_blank_level(std::size_t level, std::size_t larger, bool has_network);

/// Pixel size, share, bad tiles and blank levels, for a mask that was found with the default settings, a line each.
/// \param context that `prepare_mask` was called with
std::vector<std::string> doubts_of_tissue(const Mask& mask, const SlideContext& context, const std::string& remedy);

}  // namespace slidestream::operators
