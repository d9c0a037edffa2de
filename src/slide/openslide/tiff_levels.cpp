#include "slide/openslide/tiff_levels.hpp"

#include <tiff.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <slidestream/error.hpp>
#include <span>

#include "codec/tile_rule.hpp"
#include "slide/level_coding.hpp"
#include "slide/open_budget.hpp"
#include "slide/tiff/level_tags.hpp"
#include "slide/tile_bytes.hpp"
#include "slide/tile_colour.hpp"

namespace slidestream::openslide {

namespace {

constexpr std::size_t colours = 3;

const char* said_by_tile(const std::optional<Colour>& colour) {
  if (!colour) return "contradicts itself";
  return *colour == Colour::rgb ? "is RGB" : "is YCbCr";
}

class LevelChecker {
 public:
  LevelChecker(const File& file, const OpenOptions& options)
      : file_(file), options_(options), budget_(file.path(), file.size(), options), raw_(file, budget_) {}

  TiffLevels check() {
    TiffLevels found;
    for (const RawDirectory& directory : raw_.main_chain()) {
      if (!directory.has_tiles()) continue;
      check_tags(directory);
      Level level;
      LevelCoding coding;
      read_level(raw_, budget_, directory, file_, options_, false, level, coding, found.warnings);
      check_colours(level, coding);
      const RawEntry* icc = directory.find(TIFFTAG_ICCPROFILE);
      if (icc != nullptr && level_ == 0) found.icc = *icc;
      ++level_;
    }
    return found;
  }

 private:
  [[noreturn]] void refuse(const std::string& cause) const {
    throw_slide_error(file_.path(), "level " + std::to_string(level_) + ": " + cause);
  }

  void check_tags(const RawDirectory& directory) const {
    const auto value = [&](std::uint16_t tag, std::uint64_t missing) {
      return raw_.number(directory, tag).value_or(missing);
    };
    const std::uint64_t orientation = value(TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    if (orientation != ORIENTATION_TOPLEFT) {
      refuse("Orientation " + std::to_string(orientation) + " isn't applied by OpenSlide, which reads this file");
    }
    const std::uint64_t photometric = value(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    const bool has_one = photometric == PHOTOMETRIC_MINISWHITE || photometric == PHOTOMETRIC_MINISBLACK;
    const std::uint64_t samples = value(TIFFTAG_SAMPLESPERPIXEL, 1);
    if (samples > (has_one ? 1 : colours)) {
      refuse("SamplesPerPixel " + std::to_string(samples) + " with PhotometricInterpretation " +
             std::to_string(photometric) + ": OpenSlide, which reads this file, takes further samples for alpha");
    }
  }

  /// Numbers of the first, the middle and the last of the tiles that are there.
  std::set<std::size_t> some_tiles(const Level& level, const LevelCoding& coding) const {
    std::vector<std::size_t> there;
    there.reserve(coding.tiles.size());
    for (std::size_t i = 0; i < coding.tiles.size(); ++i) {
      const TileRange& tile = coding.tiles[i];
      const bool is_there = tile.length > 0 && tile.offset > 0 && file_.contains(tile.offset, tile.length);
      if (is_there && !claims_too_many_bytes(level, tile)) there.push_back(i);
    }
    if (there.empty()) return {};
    return {there.front(), there[there.size() / 2], there.back()};
  }

  /// OpenSlide goes by the tag where JPEG tiles say otherwise.
  void check_colours(const Level& level, const LevelCoding& coding) {
    if (level.codec != Codec::jpeg || is_grey(level.colour)) return;
    const auto read = [this](std::uint64_t offset, std::span<std::byte> to) {
      budget_.take_bytes(to.size());
      file_.read(offset, to);
    };
    for (const std::size_t tile : some_tiles(level, coding)) {
      const std::optional<CodedFrame> frame = frame_of_tile(level, coding, coding.tiles[tile], read);
      if (!frame || frame->components != colours) continue;
      const TileDemand demand = demand_for(level, coding.tiles_say_colour, static_cast<std::int64_t>(tile));
      const std::optional<Colour> colour = colour_of_frame(demand, *frame);
      if (colour == level.colour) continue;
      refuse("tile " + std::to_string(tile) + " " + said_by_tile(colour) +
             " by its markers, sampling and tables, but OpenSlide, which reads this file, follows "
             "PhotometricInterpretation " +
             (level.colour == Colour::rgb ? "2 RGB" : "6 YCbCr"));
    }
  }

  const File& file_;
  const OpenOptions& options_;
  OpenBudget budget_;
  RawTiff raw_;
  std::size_t level_ = 0;
};

}  // namespace

bool are_levels_directories(std::string_view vendor) noexcept { return vendor == "philips" || vendor == "trestle"; }

TiffLevels check_tiff_levels(const File& file, const OpenOptions& options) {
  return LevelChecker(file, options).check();
}

}  // namespace slidestream::openslide
