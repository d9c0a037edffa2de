#include "slide/tiff/tiff_container.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "slide/channels.hpp"
#include "slide/level_factor.hpp"
#include "slide/open_budget.hpp"
#include "slide/pixel_size.hpp"
#include "slide/tiff/aperio.hpp"
#include "slide/tiff/level_tags.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {
namespace {

constexpr std::uint64_t most_sub_directories = 4096;
/// Of NewSubfileType. Masks are no images, and Aperio marks its macro image by a bit of its own.
constexpr std::uint64_t mask_bit = FILETYPE_MASK;
constexpr std::uint64_t macro_bit = 8;

/// A directory in the order in which it is found.
struct Candidate {
  RawDirectory raw;
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  bool tiled = false;
  bool reduced = false;    ///< NewSubfileType says that it is a smaller version of another image
  std::string associated;  ///< "label", "macro", "thumbnail", ... where the directory says so
};

/// Of a description that says only what the image is.
constexpr std::uint64_t most_of_associated = 4096;

class DirectoryReader {
 public:
  DirectoryReader(Slide::Impl& slide, TiffContainer& container, const File& file, const OpenOptions& options)
      : slide_(slide),
        container_(container),
        file_(file),
        options_(options),
        budget_(file.path(), file.size(), options),
        raw_(file, budget_) {}

  void read() {
    slide_.info.container = raw_.big() ? "BigTIFF" : "TIFF";
    std::vector<Candidate> main = main_directories();
    const auto is_level = [](const Candidate& c) { return c.tiled && c.associated.empty(); };
    const auto first_tiled = std::find_if(main.begin(), main.end(), is_level);
    const bool tiled = first_tiled != main.end();
    const std::size_t first = tiled ? static_cast<std::size_t>(first_tiled - main.begin()) : 0;
    const std::vector<std::size_t> planes = same_size(main, main[first]);
    const std::size_t plane = choose_plane(main, planes);
    const std::size_t base = planes[plane];
    if (slide_is_aperios(main[base])) name_reduced(main, base);

    std::vector<const Candidate*> levels{&main[base]};
    std::vector<Candidate> subs;
    if (tiled) {
      for (const Candidate& other : main) {
        if (is_level(other) && is_of_plane(main, other, plane, planes.size())) levels.push_back(&other);
      }
      subs = sub_directories(main[base].raw);
      for (const Candidate& sub : subs) {
        if (is_level(sub)) levels.push_back(&sub);
      }
      keep_pyramid(levels);
    }
    for (const Candidate* level : levels) add_level(level->raw);
    name_associated(main, levels, planes);
    // The first plane's text is about all of them.
    describe(main[planes.front()].raw);
  }

 private:
  /// Faults don't matter here: only levels are held to what is supported.
  Candidate examine(RawDirectory directory, DescriptionPlace place) {
    Candidate result;
    result.tiled = directory.has_tiles();
    result.width = raw_.number(directory, TIFFTAG_IMAGEWIDTH).value_or(0);
    result.height = raw_.number(directory, TIFFTAG_IMAGELENGTH).value_or(0);
    const std::uint64_t type = raw_.number(directory, TIFFTAG_SUBFILETYPE).value_or(0);
    result.reduced = (type & FILETYPE_REDUCEDIMAGE) != 0;
    result.associated = associated_name(raw_.text(directory, TIFFTAG_IMAGEDESCRIPTION, most_of_associated), place);
    if (result.associated.empty() && (type & macro_bit) != 0) result.associated = "macro";
    // A file may be a mask and nothing else.
    const bool is_mask = (type & mask_bit) != 0 && place == DescriptionPlace::further_image;
    if (result.associated.empty() && is_mask) result.associated = "mask";
    result.raw = std::move(directory);
    return result;
  }

  std::vector<Candidate> main_directories() {
    std::vector<Candidate> result;
    for (RawDirectory& directory : raw_.main_chain()) {
      seen_.insert(directory.offset);
      const DescriptionPlace place = result.empty() ? DescriptionPlace::first_image : DescriptionPlace::further_image;
      result.push_back(examine(std::move(directory), place));
    }
    return result;
  }

  /// Numbers of the directories that are as large as `one`. Those that say that they are reduced images or masks are
  /// none, nor are labels and the like.
  std::vector<std::size_t> same_size(const std::vector<Candidate>& main, const Candidate& one) const {
    constexpr std::uint64_t reduced_or_mask = FILETYPE_REDUCEDIMAGE | FILETYPE_MASK;
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < main.size(); ++i) {
      const Candidate& other = main[i];
      const bool same =
          one.width > 0 && other.width == one.width && other.height == one.height && other.tiled == one.tiled;
      const bool whole = (raw_.number(other.raw, TIFFTAG_SUBFILETYPE).value_or(0) & reduced_or_mask) == 0;
      if (&other == &one || (same && whole && other.associated.empty())) found.push_back(i);
    }
    return found;
  }

  /// Which of the planes of level 0 is read. \throws SlideError where there are several and none is chosen
  std::size_t choose_plane(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes) {
    const Candidate& first = main[planes.front()];
    const std::uint64_t samples = raw_.number(first.raw, TIFFTAG_SAMPLESPERPIXEL).value_or(1);
    OmePlanes declared = ome_planes(raw_.text(first.raw, TIFFTAG_IMAGEDESCRIPTION, OpenBudget::most_description),
                                    std::max<std::uint64_t>(samples, 1));
    Channels channels{std::max(planes.size(), declared.count), planes.size(), std::move(declared.names)};
    if (channels.count == 1) return 0;
    for (std::string& name : channels.names) name = without_control_characters(std::move(name));
    slide_.info.channels = channel_names(channels);
    // Planes are what is chosen from, not the samples of their pixels.
    const std::size_t chosen = chosen_channel(file_.path(), channels, options_);
    options_.channel = -1;
    return chosen;
  }

  /// Whether a directory of the main chain is of this plane: where each size of the pyramid has one directory for each
  /// plane, those are in the order of planes.
  bool is_of_plane(const std::vector<Candidate>& main, const Candidate& one, std::size_t plane,
                   std::size_t planes) const {
    if (planes == 1) return true;
    std::vector<const Candidate*> group;
    for (const Candidate& other : main) {
      if (other.width == one.width && other.height == one.height && other.tiled) group.push_back(&other);
    }
    return group.size() == planes && group[plane] == &one;
  }

  std::vector<Candidate> sub_directories(const RawDirectory& parent) {
    std::vector<Candidate> result;
    const RawEntry* entry = parent.find(TIFFTAG_SUBIFD);
    if (entry == nullptr) return result;
    if (entry->count > most_sub_directories) {
      throw_slide_error(file_.path(), "SubIFDs has " + std::to_string(entry->count) + " values, supported are up to " +
                                          std::to_string(most_sub_directories));
    }
    for (const std::uint64_t offset : raw_.values(*entry, "SubIFDs")) {
      // One that comes again is no other level.
      if (!seen_.insert(offset).second) continue;
      result.push_back(examine(raw_.directory(offset), DescriptionPlace::further_image));
    }
    return result;
  }

  /// Leaves the first, and those that are smaller versions of it, largest first, the first of equals.
  static void keep_pyramid(std::vector<const Candidate*>& levels) {
    const Candidate& base = *levels.front();
    std::vector<const Candidate*> smaller;
    std::copy_if(levels.begin() + 1, levels.end(), std::back_inserter(smaller),
                 [&base](const Candidate* c) { return is_reduction(base, *c); });
    const auto key = [](const Candidate* c) { return std::pair(c->width, c->height); };
    std::stable_sort(smaller.begin(), smaller.end(), [&](auto* a, auto* b) { return key(a) > key(b); });
    const auto end = std::unique(smaller.begin(), smaller.end(), [&](auto* a, auto* b) { return key(a) == key(b); });
    levels.resize(1);
    levels.insert(levels.end(), smaller.begin(), end);
  }

  static bool is_reduction(const Candidate& base, const Candidate& other) {
    if (other.width == 0 || other.height == 0 || other.width >= base.width || other.height >= base.height) return false;
    const auto real = [](std::uint64_t n) { return static_cast<double>(n); };
    const double aspect = real(base.width) / real(base.height);
    const auto close = [](double found, double expected) {
      return std::abs(found - expected) <= std::max(2.0, 0.02 * expected);
    };
    const bool same_shape =
        close(real(other.height), real(other.width) / aspect) || close(real(other.width), real(other.height) * aspect);
    return same_shape && (has_whole_factor(base.width, other.width) || has_whole_factor(base.height, other.height));
  }

  /// Whether pixels of the smaller one are 2, 3, ... of the larger one's, but for 2 pixels or a share of its rest.
  static bool has_whole_factor(std::uint64_t larger, std::uint64_t smaller) {
    const auto real = [](std::uint64_t n) { return static_cast<double>(n); };
    const double factor = std::max(2.0, std::round(real(larger) / real(smaller)));
    return std::abs(real(smaller) * factor - real(larger)) <= std::max(2.0 * factor, 0.02 * real(larger));
  }

  bool slide_is_aperios(const Candidate& base) {
    return raw_.text(base.raw, TIFFTAG_IMAGEDESCRIPTION, OpenBudget::most_description).starts_with("Aperio");
  }

  /// Aperio marks its label and macro image as reduced, and no level. Other programs that keep Aperio's description
  /// mark all of the smaller levels, which says nothing.
  static void name_reduced(std::vector<Candidate>& main, std::size_t base) {
    const auto is_smaller_level = [&](const Candidate& c) {
      return c.tiled && c.associated.empty() && &c != &main[base];
    };
    const bool says_something =
        std::any_of(main.begin(), main.end(), [&](const Candidate& c) { return is_smaller_level(c) && !c.reduced; });
    for (std::size_t i = 0; i < main.size(); ++i) {
      Candidate& candidate = main[i];
      if (i == base || !candidate.reduced || !candidate.associated.empty()) continue;
      if (says_something || !candidate.tiled) candidate.associated = "image " + std::to_string(i);
    }
  }

  void add_level(const RawDirectory& directory) {
    Level level;
    LevelCoding coding;
    read_level(raw_, budget_, directory, file_, options_, level, coding);
    TiffContainer::LevelPlace place;
    place.directory = directory.offset;
    if (const RawEntry* icc = directory.find(TIFFTAG_ICCPROFILE)) place.icc = *icc;
    container_.add_level(std::move(place));
    std::vector<Level>& levels = slide_.info.levels;
    if (levels.empty() && coding.channels > 1) {
      slide_.info.channels = channel_names({coding.channels, coding.channels, {}, false});
    }
    if (!levels.empty()) {
      level.downsample = level_factor(levels.front().width, level.width);
    }
    levels.push_back(level);
    slide_.codings.push_back(std::move(coding));
  }

  void name_associated(const std::vector<Candidate>& main, const std::vector<const Candidate*>& levels,
                       const std::vector<std::size_t>& planes) {
    for (std::size_t i = 0; i < main.size(); ++i) {
      const auto same = [&](const Candidate* level) { return level->raw.offset == main[i].raw.offset; };
      if (std::any_of(levels.begin(), levels.end(), same)) continue;
      if (std::find(planes.begin(), planes.end(), i) != planes.end()) continue;
      std::string name = main[i].associated;
      // Aperio puts its thumbnail second, without saying so.
      if (name.empty()) name = i == 1 && !main[i].tiled ? "thumbnail" : "image " + std::to_string(i);
      slide_.info.associated.push_back(std::move(name));
      container_.add_associated(main[i].raw.offset);
    }
  }

  void describe(const RawDirectory& directory) {
    read_description(raw_.text(directory, TIFFTAG_IMAGEDESCRIPTION, OpenBudget::most_description), slide_.info);
    if (!slide_.info.mpp && slide_.info.format == "tiff") {
      set_pixel_size(slide_.info, mpp_by_resolution(directory, TIFFTAG_XRESOLUTION),
                     mpp_by_resolution(directory, TIFFTAG_YRESOLUTION));
    }
  }

  /// Plain TIFF: from XResolution or YResolution. Above 20 um per pixel it is a printing resolution, which says nothing
  /// of the slide.
  std::optional<double> mpp_by_resolution(const RawDirectory& directory, std::uint16_t tag) const {
    const std::optional<float> resolution = raw_.real(directory, tag);
    const std::uint64_t unit = raw_.number(directory, TIFFTAG_RESOLUTIONUNIT).value_or(RESUNIT_INCH);
    if (!resolution || (unit != RESUNIT_INCH && unit != RESUNIT_CENTIMETER)) return std::nullopt;
    const double mpp = (unit == RESUNIT_INCH ? 25400.0 : 10000.0) / static_cast<double>(*resolution);
    if (!(mpp > 0.0 && mpp <= 20.0)) return std::nullopt;
    return mpp;
  }

  Slide::Impl& slide_;
  TiffContainer& container_;
  const File& file_;
  OpenOptions options_;
  OpenBudget budget_;
  RawTiff raw_;
  std::unordered_set<std::uint64_t> seen_;  ///< offsets of directories
};

}  // namespace

void open_tiff(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options) {
  const File& only = *file;
  slide.files.add(std::move(file));
  auto container = std::make_unique<TiffContainer>(only);
  DirectoryReader(slide, *container, only, options).read();
  slide.container = std::move(container);
}

}  // namespace slidestream
