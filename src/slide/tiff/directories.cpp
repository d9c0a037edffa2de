#include "slide/tiff/tiff_container.hpp"

#include <algorithm>
#include <optional>
#include <slidestream/error.hpp>
#include <unordered_set>
#include <utility>

#include "slide/channels.hpp"
#include "slide/level_factor.hpp"
#include "slide/open_budget.hpp"
#include "slide/tiff/aperio.hpp"
#include "slide/tiff/aperio_images.hpp"
#include "slide/tiff/candidate.hpp"
#include "slide/tiff/ets_files.hpp"
#include "slide/tiff/grey_planes.hpp"
#include "slide/tiff/level_candidates.hpp"
#include "slide/tiff/level_tags.hpp"
#include "slide/tiff/ome_samples.hpp"
#include "slide/tiff/ome_slide.hpp"
#include "slide/tiff/ome_xml.hpp"
#include "slide/tiff/pixel_sizes.hpp"
#include "slide/tiff/plane_levels.hpp"
#include "slide/tiff/pyramid.hpp"
#include "slide/tiff/raw_directory.hpp"
#include "slide/tiff/stacked_planes.hpp"
#include "slide/tiff/unread_candidates.hpp"
#include "slide/unread_images.hpp"

namespace slidestream {
namespace {

constexpr std::uint64_t most_sub_directories = 4096;
constexpr std::size_t most_planes = std::size_t{1} << 16;
/// Of NewSubfileType. Masks are no images, and Aperio marks its macro image by a bit of its own.
constexpr std::uint64_t mask_bit = FILETYPE_MASK;
constexpr std::uint64_t macro_bit = 8;

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
        raw_(file, budget_),
        ome_(slide, file, raw_) {}

  void read() {
    slide_.info.container = raw_.big() ? "BigTIFF" : "TIFF";
    std::vector<Candidate> main = main_directories();
    ome_.read(main);
    const std::size_t first = ome_.first_plane(main);
    name_slide(main, first);
    const std::vector<std::size_t> planes = planes_of(main, first);
    const std::size_t plane = choose_plane(main, planes);
    const std::size_t base = planes[plane];
    if (const OmeImage* image = ome_.image()) {
      sample_names_ = read_sample_names(*image, raw_, main[base].raw, slide_.info.warnings);
    }
    if (main[base].is_aperios) {
      name_aperios_images(main, base);
      for (std::string& line : lines_of_types(main, base)) slide_.info.warnings.push_back(std::move(line));
    }
    const std::vector<Candidate> subs = sub_directories(main[base].raw);
    // Of several directories the description counts those.
    if (!ome_.is_there() && planes.size() == 1) choose_stacked(main[base], main, subs);
    if (!ome_.is_there()) warn_of_lsm(main[base].raw, planes.size());
    std::vector<const Candidate*> levels = levels_of(main, subs, planes, plane);
    warn_of_deeper_subs(subs, levels);
    add_levels(levels, main);
    name_associated(main, levels, planes, plane);
    // The first plane's text is about all of them.
    describe(main[planes.front()], levels);
  }

  /// Which planes of the slide are its red, green and blue, if they are. What was read is the first plane.
  const std::optional<ColourPlaces>& colours_in_planes() const noexcept { return colours_; }

 private:
  /// Faults don't matter here: only levels are held to what is supported. What an image is must be clear, though.
  Candidate examine(RawDirectory directory) {
    Candidate result;
    result.tiled = directory.has_tiles();
    const auto side = [&](std::uint16_t tag, const char* name) {
      std::string fault = "is 0";
      const std::uint64_t value = raw_.only_number(directory, tag, fault).value_or(0);
      if (value == 0 && result.fault.empty()) result.fault = std::string(name) + " " + fault;
      return value;
    };
    result.width = side(TIFFTAG_IMAGEWIDTH, "ImageWidth");
    result.height = side(TIFFTAG_IMAGELENGTH, "ImageLength");
    if (directory.has_twice(TIFFTAG_SUBFILETYPE)) throw_slide_error(file_.path(), "NewSubfileType stands twice");
    result.type = raw_.number(directory, TIFFTAG_SUBFILETYPE).value_or(0);
    std::string text = raw_.text(directory, TIFFTAG_IMAGEDESCRIPTION, most_of_associated);
    result.is_aperios = text.starts_with("Aperio");
    result.focus = name_of_focus(text);
    result.is_thumbnail = size_of_thumbnail(text) == result.size();
    result.associated = associated_name(text);
    if (!result.associated.empty()) result.says_so = std::move(text);
    if (result.associated.empty() && (result.type & macro_bit) != 0) result.associated = "macro";
    const bool is_mask =
        (result.type & mask_bit) != 0 || raw_.number(directory, TIFFTAG_PHOTOMETRIC) == std::uint64_t{PHOTOMETRIC_MASK};
    if (result.associated.empty() && is_mask) result.associated = "mask";
    result.raw = std::move(directory);
    return result;
  }

  std::vector<Candidate> main_directories() {
    std::vector<Candidate> result;
    for (RawDirectory& directory : raw_.main_chain()) {
      seen_.insert(directory.offset);
      result.push_back(examine(std::move(directory)));
      is_aperios_ = is_aperios_ || result.back().is_aperios;
    }
    if (result.size() > 1) judge_sizes(result);
    return result;
  }

  /// An image without a size may be the slide, and a smaller one must not pass for it. Beside tiles, strips are none.
  void judge_sizes(const std::vector<Candidate>& main) {
    const bool has_tiles = std::ranges::any_of(main, [](const Candidate& c) { return c.tiled && c.fault.empty(); });
    for (std::size_t i = 0; i < main.size(); ++i) {
      if (main[i].fault.empty() || (has_tiles && !main[i].tiled)) continue;
      throw_slide_error(file_.path(), "directory " + std::to_string(i) + ": " + main[i].fault);
    }
    warn_of_sizes(main, "directory");
  }

  /// A line for all images without a size: there may be thousands.
  void warn_of_sizes(const std::vector<Candidate>& images, const std::string& kind) {
    const auto has_fault = [](const Candidate& c) { return !c.fault.empty(); };
    const auto first = std::ranges::find_if(images, has_fault);
    if (first == images.end()) return;
    const std::ptrdiff_t more = std::count_if(first + 1, images.end(), has_fault);
    slide_.info.warnings.push_back(kind + " " + std::to_string(first - images.begin()) + ": " + first->fault +
                                   ": it is no level" +
                                   (more == 0 ? std::string() : ", nor are " + std::to_string(more) + " more"));
  }

  std::string text_of(const Candidate& candidate) const {
    return raw_.text(candidate.raw, TIFFTAG_IMAGEDESCRIPTION, OpenBudget::most_description);
  }

  /// The slide is nothing else; and words that it has itself, repeated in another directory, say nothing of that one.
  void name_slide(std::vector<Candidate>& main, std::size_t first) {
    main[first].associated.clear();
    const std::string own = raw_.text(main[first].raw, TIFFTAG_IMAGEDESCRIPTION, most_of_associated);
    for (Candidate& candidate : main) {
      if (!candidate.says_so.empty() && candidate.says_so == own) candidate.associated.clear();
    }
    ome_.name_associated(main, first);
  }

  /// Directories of the planes of level 0, of which this file may hold some; `numbers_` are then theirs.
  std::vector<std::size_t> planes_of(const std::vector<Candidate>& main, std::size_t first) {
    std::vector<std::size_t> same = images_as_large(main, main[first]);
    const OmeImage* image = ome_.image();
    // Another image's directory is no plane of the slide.
    if (!ome_.has_places()) std::erase_if(same, [&](std::size_t at) { return at != first && ome_.is_claimed(at); });
    if (image == nullptr || !ome_.has_places() || !image->is_placed) return same;
    std::vector<std::size_t> planes;
    for (const auto& [plane, at] : image->directories) {
      const bool is_next = at < main.size() && main[at].width == main[first].width &&
                           main[at].height == main[first].height && std::ranges::find(planes, at) == planes.end();
      if (!is_next) continue;
      planes.push_back(at);
      numbers_.push_back(plane);
    }
    // The first ones need no numbers.
    if (!numbers_.empty() && numbers_.back() + 1 == numbers_.size()) numbers_.clear();
    std::erase_if(same, [this](std::size_t at) { return ome_.is_claimed(at); });
    if (!same.empty()) {
      slide_.info.warnings.push_back("its OME-XML doesn't name " + std::to_string(same.size()) +
                                     " of its images of the slide's size: they aren't read");
    }
    return planes;
  }

  /// Which of the planes of level 0 is read. \throws SlideError where there are several and none is chosen
  std::size_t choose_plane(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes) {
    const OmeImage* declared = ome_.image();
    Channels channels{planes.size(), planes.size(), {}};
    if (declared != nullptr) channels.count = std::max(planes.size(), declared->planes);
    if (channels.count == 1) return 0;
    if (channels.count > most_planes) {
      throw_slide_error(file_.path(), "its OME-XML declares more than " + std::to_string(most_planes) + " planes");
    }
    channels.numbers = numbers_;
    if (declared != nullptr) {
      channels.names = plane_names(*declared);
      channels.is_unknown = declared->lies_elsewhere && planes.size() < channels.count;
      if (ome_.has_places() || channels.is_unknown) channels.elsewhere = declared->elsewhere;
      channels.are_planes = declared->depths * declared->times > 1;
    } else if (is_aperios_) {
      channels.names = names_of_focuses(main, planes);
      channels.are_planes = !channels.names.empty();
    } else {
      channels.names = names_of_qptiff(main, planes);
    }
    for (std::string& name : channels.names) name = without_control_characters(std::move(name));
    for (auto& [plane, file] : channels.elsewhere) file = without_control_characters(std::move(file));
    slide_.info.channels = channel_names(channels);
    slide_.info.held_channels = held_channels(channels);
    if (options_.channel == -1 && planes.size() == channels.count) {
      colours_ = places_of_colours(channels.names);
      if (colours_) options_.channel = 0;
    }
    // Planes are what is chosen from, not the samples of their pixels.
    const std::size_t chosen = chosen_channel(file_.path(), channels, options_);
    options_.channel = -1;
    if (numbers_.empty()) return chosen;
    return static_cast<std::size_t>(std::ranges::find(numbers_, chosen) - numbers_.begin());
  }

  /// Planes behind each other under the directory of level 0: `input.channel` 0 chooses the first, in its colours.
  void choose_stacked(const Candidate& image, const std::vector<Candidate>& main, const std::vector<Candidate>& subs) {
    std::vector<RawDirectory> others;
    for (const auto* list : {&main, &subs}) {
      for (const Candidate& other : *list) others.push_back(other.raw);
    }
    const StackedPlanes planes = stacked_planes(file_, raw_, image.raw, others);
    if (planes.count < 2) return;
    if (options_.channel != 0) refuse_stacked_planes(file_, planes);
    if (is_rgb(image.raw)) options_.channel = -1;
  }

  bool is_rgb(const RawDirectory& directory) const {
    return raw_.number(directory, TIFFTAG_PHOTOMETRIC) == std::uint64_t{PHOTOMETRIC_RGB} &&
           raw_.number(directory, TIFFTAG_SAMPLESPERPIXEL) == std::uint64_t{3};
  }

  void warn_of_lsm(const RawDirectory& directory, std::size_t planes) {
    std::string line = line_of_lsm(file_, directory, planes, is_rgb(directory));
    if (!line.empty()) slide_.info.warnings.push_back(std::move(line));
  }

  /// As a QPTIFF names its channels; none unless all have names.
  std::vector<std::string> names_of_qptiff(const std::vector<Candidate>& main,
                                           const std::vector<std::size_t>& planes) const {
    constexpr std::size_t most_named = 64;  // each has a text of its own
    std::vector<std::string> names;
    if (planes.size() > most_named) return names;
    for (const std::size_t plane : planes) {
      names.push_back(channel_of_qptiff(text_of(main[plane])));
      if (names.back().empty()) return {};
    }
    return names;
  }

  std::vector<Candidate> sub_directories(const RawDirectory& parent) {
    std::vector<Candidate> result;
    const RawEntry* entry = parent.find(TIFFTAG_SUBIFD);
    if (entry == nullptr) return result;
    if (parent.has_twice(TIFFTAG_SUBIFD)) throw_slide_error(file_.path(), "SubIFDs stands twice");
    if (entry->count > most_sub_directories) {
      throw_slide_error(file_.path(), "SubIFDs has " + std::to_string(entry->count) + " values, supported are up to " +
                                          std::to_string(most_sub_directories));
    }
    bool are_whole = true;
    for (const std::uint64_t offset : raw_.values(*entry, "SubIFDs")) {
      // 0 is no place: libvips wrote it where an image is too small for a level. One that comes again is no other
      // level.
      if (offset == 0 || !seen_.insert(offset).second) continue;
      result.push_back(examine(raw_.directory(offset)));
      for (RawDirectory& next : raw_.chain_behind(result.back().raw, seen_, are_whole)) {
        result.push_back(examine(std::move(next)));
      }
    }
    if (!are_whole) slide_.info.warnings.emplace_back("a SubIFD leads to what is no directory: it is passed over");
    warn_of_sizes(result, "SubIFD");
    return result;
  }

  /// Level 0 and what is smaller, largest first. SubIFDs are levels; where there are none, images of the main chain are
  /// that no image of the OME-XML claims, and that have sizes of one pyramid. Those have spares behind them.
  std::vector<const Candidate*> levels_of(const std::vector<Candidate>& main, const std::vector<Candidate>& subs,
                                          const std::vector<std::size_t>& planes, std::size_t plane) {
    const std::size_t base = planes[plane];
    std::vector<const Candidate*> levels = reductions(main[base], subs);
    warn_of_subs(main[base], subs, levels, slide_.info.warnings);
    const bool are_subs = !levels.empty();
    std::vector<const Candidate*> others;
    std::vector<ImageSize> sizes;
    for (std::size_t i = 0; i < main.size(); ++i) {
      if (i == base || !may_be_level(main[i]) || ome_.is_claimed(i)) continue;
      if (plane_of(main, planes, main[i]) != plane) continue;
      const auto is_same = [&](const Candidate* level) { return are_same(*level, main[i]); };
      if (std::ranges::any_of(levels, is_same)) {
        copies_.insert(i);
        continue;
      }
      others.push_back(&main[i]);
      sizes.push_back(main[i].size());
    }
    std::vector<const Candidate*> told;
    for (const std::size_t i : pyramid_below(main[base].size(), sizes)) {
      if (subs.empty() || levels.empty()) continue;
      slide_.info.warnings.push_back(
          "the image of " + std::to_string(others[i]->width) + " x " + std::to_string(others[i]->height) +
          " pixels has the size of a level, but the slide's levels are SubIFDs: it is no level");
      told.push_back(others[i]);
    }
    if (levels.empty()) {
      for (const std::size_t i : pyramid_below(main[base].size(), sizes)) levels.push_back(others[i]);
      // Aperio's files say which images are levels.
      if (!main[base].is_aperios) {
        if (planes.size() == 1) cut_ = cut_candidates(main[base], levels, others);
        levels = with_spares(levels, others);
        for (const Candidate* cut : cut_) {
          const auto is_smaller = [&](const Candidate* level) { return level->width < cut->width; };
          levels.insert(std::ranges::find_if(levels, is_smaller), cut);
        }
      }
    }
    levels.insert(levels.begin(), &main[base]);
    std::vector<const Candidate*> unread;
    std::size_t smaller = 0;
    for (const Candidate* other : others) {
      const bool is_small = is_small_beside(other->width, other->height, main[base].width, main[base].height);
      // Those of the slide's size were counted before.
      const bool is_counted =
          ome_.image() != nullptr && other->width == main[base].width && other->height == main[base].height;
      const bool is_known =
          std::ranges::find(levels, other) != levels.end() || std::ranges::find(told, other) != told.end();
      if (is_counted || is_known) continue;
      if (is_small) ++smaller;
      if (!is_small) unread.push_back(other);
    }
    const auto is_second = [&](const Candidate* level) { return level->size() == unread.front()->size(); };
    const bool has_level = !unread.empty() && std::any_of(levels.begin() + 1, levels.end(), is_second);
    warn_of_unread(unread, has_level ? size_of_level_before : "is no level of the slide", " more so large", smaller,
                   slide_.info.warnings);
    if (unread.empty() && !are_subs) warn_of_lost_pyramid(others, levels, slide_.info.warnings);
    return levels;
  }

  /// SubIFDs of a SubIFD, or of a level behind the first, are read nowhere.
  void warn_of_deeper_subs(const std::vector<Candidate>& subs, const std::vector<const Candidate*>& levels) {
    std::vector<const Candidate*> parents(levels.begin() + 1, levels.end());
    for (const Candidate& sub : subs) {
      if (std::ranges::find(levels, &sub) == levels.end()) parents.push_back(&sub);
    }
    std::erase_if(parents, [this](const Candidate* parent) {
      const std::uint64_t at = raw_.number(parent->raw, TIFFTAG_SUBIFD).value_or(0);
      return at == 0 || seen_.contains(at);
    });
    if (parents.empty()) return;
    const Candidate& first = *parents.front();
    slide_.info.warnings.push_back(
        "the SubIFDs of the image of " + std::to_string(first.width) + " x " + std::to_string(first.height) +
        " pixels aren't read, as it isn't level 0" +
        (parents.size() == 1 ? "" : ", nor are those of " + std::to_string(parents.size() - 1) + " more"));
  }

  /// Whether two directories have the same tiles.
  bool are_same(const Candidate& a, const Candidate& b) const {
    const auto first_tile = [this](const Candidate& c) { return raw_.number(c.raw, TIFFTAG_TILEOFFSETS).value_or(0); };
    return a.width == b.width && a.height == b.height && first_tile(a) != 0 && first_tile(a) == first_tile(b);
  }

  /// Spares come after all levels, so that they take nothing from what the levels may have.
  void add_levels(std::vector<const Candidate*>& levels, const std::vector<Candidate>& main) {
    const auto is_cut = [&](std::size_t i) { return std::ranges::find(cut_, levels[i]) != cut_.end(); };
    const auto is_spare = [&](std::size_t i) {
      return i > 0 && (levels[i]->size() == levels[i - 1]->size() || is_cut(i));
    };
    for (std::size_t i = 0; i < levels.size(); ++i) {
      if (!is_spare(i)) add_level(levels[i]->raw, slide_.info.levels.size());
    }
    for (std::size_t i = 1; i < levels.size();) {
      if (!is_spare(i) || add_spare(*levels[i], i, "image " + std::to_string(levels[i] - main.data()))) {
        if (is_spare(i)) slide_.codings[i].only_if_cut = is_cut(i);
        ++i;
        continue;
      }
      warn_of_unread({levels[i]}, is_cut(i) ? "is no level of the slide" : size_of_level_before, "", 0,
                     slide_.info.warnings);
      levels.erase(levels.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// \return whether the image can be read as a level
  bool add_spare(const Candidate& image, std::size_t at, const std::string& name) {
    const std::size_t warnings = slide_.info.warnings.size();
    try {
      add_level(image.raw, at);
    } catch (const StorageError&) {
      throw;
    } catch (const StoppedError&) {
      throw;
    } catch (const SlideError&) {
      slide_.info.warnings.resize(warnings);
      return false;
    }
    slide_.codings[at].spare_name = name;
    return true;
  }

  /// \param at  its number
  void add_level(const RawDirectory& directory, std::size_t at) {
    Level level;
    LevelCoding coding;
    TiffContainer::LevelPlace place;
    place.planes = read_level(raw_, budget_, directory, file_, options_, is_aperios_, level, coding,
                              slide_.info.warnings, sample_names_);
    place.directory = directory.offset;
    if (const RawEntry* icc = directory.find(TIFFTAG_ICCPROFILE)) place.icc = *icc;
    container_.add_level(std::move(place), at);
    std::vector<Level>& levels = slide_.info.levels;
    if (levels.empty() && coding.channels > 1) {
      slide_.info.channels = channel_names({coding.channels, coding.channels, sample_names_.names});
    }
    if (!levels.empty()) {
      level.downsample = level_factor(levels.front().width, level.width);
    }
    levels.insert(levels.begin() + static_cast<std::ptrdiff_t>(at), level);
    slide_.codings.insert(slide_.codings.begin() + static_cast<std::ptrdiff_t>(at), std::move(coding));
  }

  void name_associated(const std::vector<Candidate>& main, const std::vector<const Candidate*>& levels,
                       const std::vector<std::size_t>& planes, std::size_t plane) {
    const bool is_aperios = levels.front()->is_aperios;
    std::vector<std::string> unnamed;
    for (std::size_t i = 0; i < main.size(); ++i) {
      const auto same = [&](const Candidate* level) { return level->raw.offset == main[i].raw.offset; };
      if (std::any_of(levels.begin(), levels.end(), same)) continue;
      if (copies_.contains(i) || std::find(planes.begin(), planes.end(), i) != planes.end()) continue;
      if (is_level_of_other_plane(main, planes, plane, levels, main[i])) continue;
      std::string name = main[i].associated;
      // Files that follow Aperio's order have their thumbnail second, without saying so.
      if (name.empty() && !is_aperios && i == 1 && !main[i].tiled) name = "thumbnail";
      if (name.empty()) unnamed.push_back(name = "image " + std::to_string(i));
      slide_.info.associated.push_back(std::move(name));
      container_.add_associated(main[i].raw.offset);
    }
    if (!is_aperios || unnamed.empty()) return;
    slide_.info.warnings.push_back(warning_of_unnamed(unnamed.front(), unnamed.size() - 1));
  }

  void warn_of_description(const RawDirectory& directory) {
    const RawEntry* entry = directory.find(TIFFTAG_IMAGEDESCRIPTION);
    if (entry == nullptr || entry->count == 0 || raw_.bytes(*entry, 1)) return;
    slide_.info.warnings.emplace_back("ImageDescription can't be read as text: it is passed over");
  }

  void describe(const Candidate& image, const std::vector<const Candidate*>& levels) {
    const RawDirectory& directory = image.raw;
    const std::string text = text_of(image);
    warn_of_description(directory);
    const Level& largest = slide_.info.levels.front();
    const auto side = [&](std::int64_t pixels) { return largest.tiled ? static_cast<std::uint64_t>(pixels) : 1; };
    const ImageSize tile{side(largest.tile_width), side(largest.tile_height)};
    const SaidPixelSize said =
        ome_.is_there() ? ome_.pixel_size() : read_description(text, image.size(), tile, slide_.info);
    const SaidPixelSize by_tags = size_by_resolution(raw_, directory, text, slide_.info.warnings);
    settle_pixel_size(slide_.info, said, ome_.is_there() ? "OME-XML" : "the description", by_tags, "the resolution");
    if (!slide_.info.mpp && options_.mpp <= 0.0) warn_of_lacking_unit(raw_, directory, slide_.info.warnings);
    if (!ome_.is_there()) compare_descriptions(raw_, levels, text, slide_.info);
    if (!said.x && !said.y) compare_resolutions(raw_, levels, text, by_tags, slide_.info);
  }

  Slide::Impl& slide_;
  TiffContainer& container_;
  const File& file_;
  OpenOptions options_;
  OpenBudget budget_;
  RawTiff raw_;
  std::unordered_set<std::uint64_t> seen_;  ///< offsets of directories
  OmeSlide ome_;
  SampleNames sample_names_;
  bool is_aperios_ = false;                 ///< any image of the main chain says so
  std::vector<std::size_t> numbers_;        ///< of the planes here, where they aren't the image's first
  std::optional<ColourPlaces> colours_;     ///< its planes are red, green and blue
  std::vector<const Candidate*> cut_;       ///< of the main chain, that are levels if they were cut
  std::unordered_set<std::size_t> copies_;  ///< of the main chain, whose tiles a level among the SubIFDs has, too
};

}  // namespace

void open_tiff(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options) {
  refuse_olympus_overview(file->path(), slide.info.warnings);
  const File& only = *file;
  slide.files.add(std::move(file));
  auto container = std::make_unique<TiffContainer>(only);
  DirectoryReader reader(slide, *container, only, options);
  reader.read();
  slide.container = std::move(container);
  if (reader.colours_in_planes()) combine_planes(slide, options, *reader.colours_in_planes());
}

}  // namespace slidestream
