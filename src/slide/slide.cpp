#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <slidestream/error.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "slide/formats.hpp"
#include "slide/level_factor.hpp"
#include "slide/level_likeness.hpp"
#include "slide/likeness/large_tiles.hpp"
#include "slide/lost_tiles.hpp"
#include "slide/open_budget.hpp"
#include "slide/padded_level.hpp"
#include "slide/slide_impl.hpp"
#include "slide/srgb_conversion.hpp"
#include "slide/unread_images.hpp"

namespace slidestream {

const char* name(Codec codec) noexcept {
  switch (codec) {
    case Codec::none:
      return "none";
    case Codec::jpeg:
      return "jpeg";
    case Codec::jpeg2000:
      return "jpeg2000";
    case Codec::jpegls:
      return "jpegls";
    case Codec::lzw:
      return "lzw";
    case Codec::deflate:
      return "deflate";
    case Codec::zstd:
      return "zstd";
    case Codec::webp:
      return "webp";
    case Codec::lzma:
      return "lzma";
    case Codec::lerc:
      return "lerc";
    case Codec::openslide:
      return "openslide";
    case Codec::planes:
      return "planes";
    case Codec::packbits:
      break;
  }
  return "packbits";
}

const char* name(Colour colour) noexcept {
  switch (colour) {
    case Colour::grey:
      return "grey";
    case Colour::grey_inverted:
      return "grey_inverted";
    case Colour::rgb:
      return "rgb";
    case Colour::ycbcr:
      break;
  }
  return "ycbcr";
}

namespace {

/// A pixel of 0.25 um is called 40 x, one of 0.5 um 20 x.
constexpr double micrometres_at_magnification_1 = 10.0;

/// A pixel size that the magnification makes impossible. Scanners with a doubler are off by 2.
void compare_with_magnification(SlideInfo& info) {
  constexpr double most_misfit = 4.0;
  if (!info.mpp || !info.magnification || *info.magnification <= 0.0) return;
  const double expected = micrometres_at_magnification_1 / *info.magnification;
  if (*info.mpp <= most_misfit * expected && *info.mpp >= expected / most_misfit) return;
  std::ostringstream text;
  text << "its pixels of " << *info.mpp << " micrometres don't fit its magnification of " << *info.magnification
       << ", at which they have about " << expected << "; input.mpp sets their size";
  info.warnings.push_back(text.str());
}

/// A list's pixel size that isn't of the slide's own scale: of another unit, or another slide.
void compare_with_list(SlideInfo& info, double listed) {
  constexpr double most_misfit = 10.0;
  if (!info.mpp || (listed <= most_misfit * *info.mpp && listed >= *info.mpp / most_misfit)) return;
  std::ostringstream text;
  text << "the list gives its pixels " << listed << " micrometres, and the slide says " << *info.mpp
       << ": the list counts";
  info.warnings.push_back(text.str());
}

/// Halves what tiles decode to, where libjpeg can.
void shrink(Level& level) {
  if (level.codec != Codec::jpeg || level.tile_width % 16 != 0 || level.tile_height % 16 != 0) return;
  level.width = (level.width + 1) / 2;
  level.height = (level.height + 1) / 2;
  level.tile_width /= 2;
  level.tile_height /= 2;
  level.shrunk = true;
}

std::string size_text(const Level& level) { return std::to_string(level.width) + " x " + std::to_string(level.height); }

/// Leaves out tiles of the last columns and rows.
void keep_tiles(LevelCoding& coding, const Level& had, const Level& has) {
  if (had.columns == has.columns && had.rows == has.rows) return;
  std::vector<TileRange> kept;
  kept.reserve(static_cast<std::size_t>(has.columns * has.rows));
  for (std::int64_t row = 0; row < has.rows; ++row) {
    const auto begin = coding.tiles.begin() + row * had.columns;
    kept.insert(kept.end(), begin, begin + has.columns);
  }
  coding.tiles = std::move(kept);
}

/// Cuts what pads a level at its right and lower borders. Its pixels lie whole pixels of level 0 apart then.
/// \return a line about it; empty: nothing pads it
std::string cut_padding(const Slide& slide, Slide::Impl& impl, std::size_t level, const OpenBudget& budget) {
  Level& coded = impl.coded[level];
  const std::uint64_t padding = padding_bytes(impl.coded.front(), coded, impl.codings[level].said_factor);
  const std::uint64_t large =
      std::max(LargeTiles::bytes_of(impl.coded.front()), LargeTiles::bytes_of(impl.coded[level - 1])) +
      LargeTiles::bytes_of(coded);
  if (padding > 0) impl.compared_bytes = std::max(impl.compared_bytes, padding + large);
  const std::optional<Level> cut = without_padding(slide, level, budget);
  if (!cut) return {};
  const std::string padded = size_text(coded);
  keep_tiles(impl.codings[level], coded, *cut);
  coded = *cut;
  impl.info.levels[level] = *cut;
  return "level " + std::to_string(level) + " of " + padded + " pixels is padded to whole tiles: " + size_text(*cut) +
         " of them are the slide";
}

/// Of a level that ends before the slide's right and lower borders pixels lie whole pixels of level 0 apart.
/// \return a line about it; empty: it doesn't
std::string find_cut(const Slide& slide, Slide::Impl& impl, std::size_t level, const OpenBudget& budget) {
  const std::optional<CutLevel> cut = cut_level(slide, level, budget);
  if (!cut) return {};
  const std::string named = "level " + std::to_string(level) + " of " + size_text(cut->level) + " pixels ";
  if (!cut->is_told) {
    return named +
           "may lack pixels at its right and lower borders, or be resized, which nothing in it tells: places on it are "
           "found by the ratio of the sizes";
  }
  impl.coded[level] = cut->level;
  impl.info.levels[level] = cut->level;
  const Level& base = impl.coded.front();
  const auto behind = [&](std::int64_t side, std::int64_t pixels) {
    return std::to_string(std::max<std::int64_t>(0, side - pixels * cut->level.cut_factor));
  };
  return named + "is cut at its right and lower borders: each is " + std::to_string(cut->level.cut_factor) +
         " of level 0 along both axes, and it lacks the last " + behind(base.width, cut->level.width) + " x " +
         behind(base.height, cut->level.height) + " of them";
}

std::string black_places_line(std::size_t level, const BlackPlaces& places) {
  return "level " + std::to_string(level) + " is black where level " + std::to_string(level - 1) + " isn't, at " +
         std::to_string(places.lost) + " of " + std::to_string(places.looked_at) +
         " black places that were looked at: pixels of it may be lost";
}

/// Whether OpenSlide's level may show all of the slide, by its sides: it takes images of any shape for levels.
bool has_shape_of_level(const std::vector<Level>& levels, std::size_t number) {
  constexpr double most_misfit = 0.1;      // overlaps of tiles are rounded in each level
  constexpr double most_pixels_off = 8.0;  // of small levels
  const Level& base = levels.front();
  const Level& before = levels[number - 1];
  const Level& level = levels[number];
  if (level.width > before.width || level.height > before.height) return false;
  const double height =
      static_cast<double>(base.height) * static_cast<double>(level.width) / static_cast<double>(base.width);
  const double off = std::abs(static_cast<double>(level.height) - height);
  return off <= most_pixels_off || off <= most_misfit * std::max(height, static_cast<double>(level.height));
}

/// Makes an image of a level.
void make_associated(Slide::Impl& impl, std::size_t level, std::string name) {
  impl.info.associated.push_back(std::move(name));
  impl.container->make_associated(level);
  const auto at = static_cast<std::ptrdiff_t>(level);
  impl.info.levels.erase(impl.info.levels.begin() + at);
  impl.coded.erase(impl.coded.begin() + at);
  impl.codings.erase(impl.codings.begin() + at);
}

/// Spares that a slide doesn't need, for one line.
class UnneededSpares {
 public:
  void add(const Level& base, const Level& spare) {
    const auto side = [](std::int64_t pixels) { return static_cast<std::uint64_t>(pixels); };
    if (is_small_beside(side(spare.width), side(spare.height), side(base.width), side(base.height))) {
      ++images_.smaller;
    } else if (images_.width > 0) {
      ++images_.others;
    } else {
      images_.width = side(spare.width);
      images_.height = side(spare.height);
    }
  }

  void warn(std::vector<std::string>& warnings) const {
    if (images_.width > 0) warnings.push_back(unread_line(images_));
  }

 private:
  UnreadImages images_{0, 0, size_of_level_before, 0, " more so large", 0};
};

/// Small tiled pages of the slide's shape that show something else, such as its label, are no levels: another image of
/// that size may be the level. Others lose what pads them, but for OpenSlide's, whose places the library tells.
void settle_levels(const Slide& slide, Slide::Impl& impl, const OpenOptions& options) {
  const OpenBudget budget(impl.info.path, impl.files.size(), options);
  std::vector<Level>& levels = impl.info.levels;
  UnneededSpares unneeded;
  bool is_contrary = false;  // a line says that the size of a level's pixels contradicts its own
  bool is_found = false;     // the level of a size that several images have
  impl.large_tiles = std::make_shared<LargeTiles>();
  for (std::size_t i = 1; i < levels.size();) {
    impl.large_tiles->forget_from(i);
    const std::string spare_name = impl.codings[i].spare_name;
    const bool only_if_cut = impl.codings[i].only_if_cut;
    if (spare_name.empty() || only_if_cut) is_found = false;
    if (is_found) {
      unneeded.add(levels.front(), levels[i]);
      make_associated(impl, i, spare_name);
      continue;
    }
    const std::string size = size_text(levels[i]);
    const bool is_openslide = levels[i].codec == Codec::openslide;
    std::string line = is_openslide ? std::string() : cut_padding(slide, impl, i, budget);
    const bool is_unpadded = !line.empty();
    if (line.empty() && !is_openslide) line = find_cut(slide, impl, i, budget);
    if (!line.empty()) impl.large_tiles->forget_from(i);
    if (const std::string& contradiction = impl.codings[i].contradiction;
        !is_unpadded && !contradiction.empty() && !is_contrary) {
      impl.info.warnings.push_back(contradiction);
      is_contrary = true;
    }
    const bool has_shape = !is_openslide || has_shape_of_level(impl.coded, i);
    if (has_shape) impl.compared_bytes = std::max(impl.compared_bytes, likeness_bytes(slide, i - 1, i));
    // Nothing tells what a page shows beside a level of which there is nothing.
    const bool is_told = has_shape && (has_any_tile(slide, i - 1) || !has_any_tile(slide, i));
    const LevelLikeness likeness = is_told ? likeness_of(slide, i - 1, i, budget) : LevelLikeness{};
    const bool is_of_one_size = levels[i].width == levels[i - 1].width && levels[i].height == levels[i - 1].height;
    const bool is_no_size =
        (only_if_cut && impl.coded[i].cut_factor == 0) || (impl.codings[i].said_factor > 0 && is_of_one_size);
    is_found = likeness.is_like && !is_no_size;
    if (is_found) {
      if (!line.empty()) impl.info.warnings.push_back(line);
      if (likeness.black.lost > 0) impl.info.warnings.push_back(black_places_line(i, likeness.black));
      ++i;
      continue;
    }
    impl.info.warnings.push_back(
        "the image of " + size + " pixels " +
        (likeness.is_like || !has_shape ? "hasn't the size of a level" : "isn't like the slide") + ": it is no level");
    make_associated(impl, i, spare_name.empty() ? "image of " + size : spare_name);
  }
  impl.large_tiles.reset();
  unneeded.warn(impl.info.warnings);
}

/// Gives images of one name numbers, so that each can be asked for: "mask", "mask 2".
void number_names(std::vector<std::string>& names) {
  std::set<std::string> taken(names.begin(), names.end());
  std::map<std::string, std::size_t> counts;
  for (std::string& name : names) {
    std::size_t& count = counts[name];
    if (++count == 1) continue;
    std::string numbered = name + " " + std::to_string(count);
    while (!taken.insert(numbered).second) numbered = name + " " + std::to_string(++count);
    name = std::move(numbered);
  }
}

/// Has tiles converted to sRGB where the slide has a profile to do it by.
void convert_colours(const Slide& slide, Slide::Impl& impl, bool for_browsers) {
  SrgbConversion found = find_srgb_conversion(slide);
  // The profile, and the copy of it from which Little CMS reads its name.
  impl.compared_bytes = std::max(impl.compared_bytes, 2 * found.profile_bytes);
  impl.profile_reading_bytes = found.reading_bytes;
  if (!found.fault.empty()) {
    if (!for_browsers) impl.info.warnings.push_back("its colours aren't converted to sRGB: " + found.fault);
    return;
  }
  if (for_browsers) {
    if (found.conversion->keeps_colours()) return;
    impl.info.notes.push_back("its colours are converted to sRGB for browsers; input.colour = \"file\" keeps them");
  }
  impl.conversion = std::move(found.conversion);
  impl.info.is_srgb = true;
}

/// As `factors_of`, of levels that may be shrunk.
LevelFactors factors_of_opened(const Level& base, const Level& level) {
  LevelFactors factors = factors_of(base, level);
  if (level.cut_factor == 0 || base.shrunk == level.shrunk) return factors;
  const double shrinking = base.shrunk ? 0.5 : 2.0;
  return {factors.x * shrinking, factors.y * shrinking};
}

}  // namespace

Slide::Slide(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Slide::~Slide() = default;

std::shared_ptr<const Slide> Slide::open(const std::filesystem::path& path, const OpenOptions& options) {
  const std::filesystem::path named = file_to_open(path);
  auto file = std::make_unique<File>(named, options.retry_opening ? options.retries : 0, options.give_up);
  auto impl = std::make_unique<Impl>(options);
  impl->info.path = named;
  const SlideFormat& format = format_of(*file);
  format.open(*impl, std::move(file), options);
  if (impl->info.file_size == 0) impl->info.file_size = impl->files.size();
  const double given = options.mpp > 0.0 ? options.mpp : impl->info.mpp ? 0.0 : options.mpp_default;
  if (options.mpp > 0.0 && options.mpp_is_listed) compare_with_list(impl->info, options.mpp);
  if (given > 0.0) {
    impl->info.mpp = given;
    impl->info.mpp_y.reset();
    impl->info.said_mpp_y.reset();
    impl->info.magnification = micrometres_at_magnification_1 / given;
  }
  compare_with_magnification(impl->info);
  impl->coded = impl->info.levels;
  Impl& opened = *impl;
  std::shared_ptr<const Slide> slide = make_slide(std::move(impl));
  if (opened.container->guesses_levels()) settle_levels(*slide, opened, options);
  if (std::string line = lost_tiles_line(*slide); !line.empty()) opened.info.warnings.push_back(std::move(line));
  number_names(opened.info.associated);
  if (options.shrink_on_load) std::ranges::for_each(opened.info.levels, shrink);
  if (options.to_srgb) convert_colours(*slide, opened, options.srgb_for_browsers);
  opened.files.set_retries(options.retries);
  return slide;
}

std::optional<double> SlideInfo::mean_mpp() const {
  if (!mpp || !mpp_y) return mpp;
  return std::sqrt(*mpp * *mpp_y);
}

void SlideInfo::require_square_pixels(const std::string& what, const std::string& remedy) const {
  if (!mpp || !mpp_y) return;
  std::ostringstream text;
  text << "its pixels aren't square, " << *mpp << " x " << *mpp_y << " micrometres, and " << what
       << " needs one size for both directions; " << remedy;
  throw_slide_error(path, text.str());
}

void SlideInfo::require_no_labels(const std::string& why) const {
  if (!labels) return;
  throw_slide_error(path, "holds labels of a network or a mask, and " + why +
                              "; read a level as it is, in Python or with tifffile, or make the labels anew, with "
                              "another input.level or image.format");
}

double SlideInfo::downsample_x(std::size_t level) const {
  return factors_of_opened(levels.front(), levels.at(level)).x;
}

double SlideInfo::downsample_y(std::size_t level) const {
  return factors_of_opened(levels.front(), levels.at(level)).y;
}

const SlideInfo& Slide::info() const noexcept { return impl_->info; }

const Level& Slide::coded_level(std::size_t level) const { return impl_->coded.at(level); }

TileRange Slide::tile(std::size_t level, std::int64_t index) const {
  return impl_->codings.at(level).tiles.at(static_cast<std::size_t>(index));
}

bool Slide::contains(const TileRange& range) const noexcept {
  return range.length == 0 || (range.offset != 0 && impl_->files.contains(range.offset, range.length));
}

void Slide::read(std::uint64_t offset, std::span<std::byte> to) const { impl_->files.read(offset, to); }

IccProfile Slide::icc_profile(std::size_t level) const {
  static_cast<void>(impl_->coded.at(level));
  return impl_->container->icc_profile(level);
}

AssociatedImage Slide::read_associated(std::size_t index) const {
  static_cast<void>(info().associated.at(index));
  return impl_->container->read_associated(*impl_, index);
}

const Slide::Impl& impl_of(const Slide& slide) noexcept { return *slide.impl_; }

std::shared_ptr<const Slide> make_slide(std::unique_ptr<Slide::Impl> impl) {
  return std::shared_ptr<const Slide>(new Slide(std::move(impl)));
}

}  // namespace slidestream
