#include "operators/tissue/preparation.hpp"

#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <limits>
#include <slidestream/error.hpp>
#include <sstream>
#include <utility>

#include "networks/tissue_network.hpp"
#include "operators/tissue/flat_blocks.hpp"
#include "operators/tissue/network_mask.hpp"
#include "operators/tissue/tissue.hpp"

namespace slidestream::operators {
namespace {

TissueRule rule_of(const TissueConfig& config) {
  TissueRule rule;
  rule.method = config.method;
  rule.threshold = config.threshold;
  rule.least_um2 = config.min_um2;
  rule.filled_um2 = config.fill_um2 < 0.0 ? std::numeric_limits<double>::infinity() : config.fill_um2;
  rule.drops_ink = config.ink == TissueInk::drop;
  return rule;
}

/// Within about a second.
bool is_read_soon(const Level& level) {
  constexpr std::int64_t most_pixels = std::int64_t{1} << 26;
  return level.width * level.height <= most_pixels;
}

}  // namespace

std::uint64_t preparation_bytes(const SlideInfo& info, std::uint64_t most_network_bytes, const Network* network) {
  constexpr std::uint64_t buffers = std::uint64_t{1} << 20;
  const SmallLevel small = choose_small_level(info, info.mean_mpp());
  const bool is_level = small.halvings == 0 && small.factor == 65536;
  const auto pixels = static_cast<std::uint64_t>(small.size.width * small.size.height);
  std::uint64_t reading = is_level ? 0 : small_rows_bytes(info, small);
  if (const auto larger = of_larger_level(info, small)) reading = std::max(reading, small_rows_bytes(info, *larger));
  const std::uint64_t bytes = buffers + std::max(10 * pixels, 3 * pixels + reading);
  if (network == nullptr) return bytes;
  // The small level may be there already, for stains.
  return bytes + plan_tissue_tiles(info, *network, most_network_bytes).bytes;
}

Preparation::Preparation(const SlideContext& context, const Config& config, Admission admission,
                         std::shared_ptr<const Network> network)
    : slide_(context.slide),
      path_(context.path),
      mpp_(context.mpp),
      tissue_(config.tissue),
      on_bad_tile_(config.decode.on_bad_tile),
      most_network_bytes_(static_cast<std::uint64_t>(config.stitch.memory_mib) << 20),
      small_(choose_small_level(context.slide.info(), context.mpp)),
      admission_(std::move(admission)),
      network_(std::move(network)) {}

Preparation& Preparation::of(const SlideContext& context, const Config& config, Admission admission) {
  if (context.common == nullptr) {
    auto network = networks::open_tissue_network(config);
    context.common = std::make_shared<Preparation>(context, config, std::move(admission), std::move(network));
  }
  return *context.common;
}

void Preparation::take_memory() {
  if (std::exchange(asked_, true) || !admission_.prepare) return;
  memory_ =
      admission_.prepare(preparation_bytes(slide_.info(), most_network_bytes_, network_.get()) + admission_.beside);
}

const SmallImage& Preparation::image() {
  take_memory();
  if (image_) return *image_;
  image_ = read_small_level(slide_, small_, on_bad_tile_);
  larger_ = of_larger_level(slide_.info(), small_);
  const FlatBlocks blocks = larger_ ? find_flat_blocks(slide_, small_, *image_) : FlatBlocks{};
  if (larger_ && has_lost_blocks(slide_, small_, *image_, blocks, larger_->level)) {
    const std::size_t larger = larger_->level;
    read_larger();
    doubt(doubt_of_blank_level(small_.level, larger, !tissue_.model.empty()));
  } else {
    note_tiles(small_.level, image_->bad_tiles);
    if (larger_ && !(blocks.are_most() && is_read_soon(slide_.info().levels[larger_->level]))) larger_.reset();
  }
  return *image_;
}

void Preparation::read_larger() {
  const SmallLevel larger = *std::exchange(larger_, std::nullopt);
  image_.reset();
  image_ = read_from_larger(slide_, small_, larger, on_bad_tile_);
  note_tiles(larger.level, image_->bad_tiles);
}

Mask Preparation::find_by_colours() {
  const Level& finest = slide_.info().levels.front();
  std::int64_t ink_pixels = 0;
  Mask mask =
      find_tissue(image().view(), small_.scale, {finest.width, finest.height}, mpp_, rule_of(tissue_), &ink_pixels);
  ink_share_ = static_cast<double>(ink_pixels) / static_cast<double>(mask.pixels.size());
  return mask;
}

void Preparation::note_tiles(std::size_t level, std::int64_t bad) {
  // A network may look at the level that the small level is made from.
  TilesAsGlass& tiles = tiles_as_glass_[level];
  tiles.lost = count_lost_tiles(slide_, level);
  tiles.bad = std::max(tiles.bad, bad);
}

Mask Preparation::make_mask() {
  const Level& finest = slide_.info().levels.front();
  const Size level0 = {finest.width, finest.height};
  if (tissue_.source == TissueSource::geojson) {
    return read_geojson_mask(outlines_beside(path_), small_.size, small_.scale, level0, &passed_over_,
                             admission_.given_up);
  }
  slide_.info().require_no_labels("tissue is found by colours");
  if (tissue_.model.empty()) {
    Mask mask = find_by_colours();
    if (!larger_ || tissue_share(mask) > 0.0) return mask;
    const std::size_t larger = larger_->level;
    mask = Mask();
    tiles_as_glass_.erase(small_.level);
    read_larger();
    mask = find_by_colours();
    if (tissue_share(mask) > 0.0) doubt(doubt_of_blank_level(small_.level, larger, false));
    return mask;
  }
  if (network_ == nullptr) throw Error("internal: the network that finds tissue isn't open");
  const TissueNetworkTiles tiles = plan_tissue_tiles(slide_.info(), *network_, most_network_bytes_);
  Mask mask = empty_mask(small_.size, small_.scale, level0);
  const TissueChoice choice = {tissue_.label, tissue_.probability, on_bad_tile_};
  note_tiles(tiles.image.level, mark_by_network(mask, slide_, *network_, tiles, choice, admission_.given_up));
  drop_holes_and_specks(mask, mpp_, rule_of(tissue_));
  return mask;
}

std::shared_ptr<const Mask> Preparation::mask() {
  if (mask_ != nullptr) return mask_;
  take_memory();
  mask_ = std::make_shared<const Mask>(make_mask());
  share_ = tissue_share(*mask_);
  return mask_;
}

std::shared_ptr<const Mask> prepare_mask(const SlideContext& context, const Config& config) {
  return Preparation::of(context, config).mask();
}

std::string doubt_of_pixel_size(bool fits_stains, const std::string& remedy) {
  return std::string(
             "the slide doesn't say its pixel size: tissue is found at 1/32 of its sides, without "
             "tissue.min_um2 and tissue.fill_um2") +
         (fits_stains ? ", and stains are fitted as if 4 pixels were 1 um" : "") + "; " + remedy;
}

std::string doubt_of_share(double share, const std::string& keys) {
  constexpr double suspicious = 0.95;
  if (share == 0.0) return "no tissue was found";
  if (share <= suspicious) return {};
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << 100.0 * share << " % of the slide are tissue; look at its mask";
  if (!keys.empty()) text << ", and set " << keys << " if it is wrong";
  return text.str();
}

std::string doubt_of_ink(double ink_share, double tissue_share) {
  constexpr double suspicious = 0.1;
  if (ink_share == 0.0 || ink_share < suspicious * (ink_share + tissue_share)) return {};
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << "at least " << 100.0 * ink_share
       << " % of the slide are left out as ink; look at its mask, and set tissue.ink = \"keep\" if that is tissue";
  return text.str();
}

std::string doubt_of_bad_tiles(std::size_t level, std::int64_t bad) {
  if (bad == 0) return {};
  return "tissue is found on level " + std::to_string(level) + ", where " + std::to_string(bad) +
         (bad == 1 ? " bad tile counts" : " bad tiles count") + " as glass";
}

std::string doubt_of_blank_level(std::size_t level, std::size_t larger, bool has_network) {
  return "level " + std::to_string(level) + " is blank where level " + std::to_string(larger) +
         " shows something: " + (has_network ? "glass and ink are" : "tissue is") + " found on level " +
         std::to_string(larger);
}

std::vector<std::string> doubts_of_tissue(const Mask& mask, const SlideContext& context, const std::string& remedy) {
  std::vector<std::string> doubts;
  if (!context.mpp) doubts.push_back(doubt_of_pixel_size(false, remedy));
  if (std::string doubt = doubt_of_share(tissue_share(mask), {}); !doubt.empty()) doubts.push_back(std::move(doubt));
  for (const auto& [level, tiles] : context.common->tiles_as_glass()) {
    if (std::string doubt = doubt_of_bad_tiles(level, tiles.bad); !doubt.empty()) doubts.push_back(std::move(doubt));
  }
  const std::vector<std::string>& others = context.common->doubts();
  doubts.insert(doubts.end(), others.begin(), others.end());
  return doubts;
}

}  // namespace slidestream::operators
