#include "slide/directories.hpp"

#include <algorithm>
#include <cmath>

#include "slide/aperio.hpp"
#include "slide/level_tags.hpp"
#include "slide/raw_directory.hpp"

namespace slidestream {
namespace {

constexpr std::uint64_t most_sub_directories = 4096;
constexpr std::uint64_t reduced_macro = FILETYPE_REDUCEDIMAGE | 8;  // how Aperio marks its macro image

/// A directory in the order in which it is found.
struct Candidate {
  RawDirectory raw;
  std::uint64_t width = 0;
  std::uint64_t height = 0;
  bool tiled = false;
  std::string associated;  ///< "label", "macro" or "thumbnail" where the directory says so
};

std::string description_of(const TiffFile& tiff) {
  const char* text = nullptr;
  return TIFFGetField(tiff.get(), TIFFTAG_IMAGEDESCRIPTION, &text) == 1 && text != nullptr ? text : "";
}

class DirectoryReader {
 public:
  DirectoryReader(Slide::Impl& slide, const OpenOptions& options)
      : slide_(slide),
        options_(options),
        raw_(slide.file),
        tiff_(slide.file, std::clamp(slide.file.size(), smallest_limit, largest_limit)) {}

  void read() {
    slide_.info.big_tiff = raw_.big();
    std::vector<Candidate> main = main_directories();
    const auto is_level = [](const Candidate& c) { return c.tiled && c.associated.empty(); };
    const auto first_tiled = std::find_if(main.begin(), main.end(), is_level);
    const std::size_t base = first_tiled == main.end() ? 0 : static_cast<std::size_t>(first_tiled - main.begin());
    const bool tiled = first_tiled != main.end();

    std::vector<const Candidate*> levels{&main[base]};
    std::vector<Candidate> subs;
    if (tiled) {
      for (const Candidate& other : main) {
        if (is_level(other)) levels.push_back(&other);
      }
      subs = sub_directories(main[base].raw);
      for (const Candidate& sub : subs) {
        if (is_level(sub)) levels.push_back(&sub);
      }
      keep_pyramid(levels);
    }
    for (const Candidate* level : levels) add_level(level->raw);
    name_associated(main, levels);
    describe(main[base].raw);
  }

 private:
  static constexpr std::uint64_t smallest_limit = std::uint64_t{1} << 20;
  static constexpr std::uint64_t largest_limit = std::uint64_t{1} << 28;

  /// Faults don't matter here: only levels are held to what is supported.
  Candidate examine(RawDirectory directory) {
    Candidate result;
    result.tiled = directory.has_tiles();
    result.width = raw_.number(directory, TIFFTAG_IMAGEWIDTH).value_or(0);
    result.height = raw_.number(directory, TIFFTAG_IMAGELENGTH).value_or(0);
    if (raw_.number(directory, TIFFTAG_SUBFILETYPE) == reduced_macro) {
      result.associated = "macro";
    } else if (tiff_.set_directory(directory.offset)) {
      result.associated = associated_name(description_of(tiff_));
    }
    result.raw = std::move(directory);
    return result;
  }

  std::vector<Candidate> main_directories() {
    std::vector<Candidate> result;
    for (RawDirectory& directory : raw_.main_chain()) result.push_back(examine(std::move(directory)));
    return result;
  }

  std::vector<Candidate> sub_directories(const RawDirectory& parent) {
    std::vector<Candidate> result;
    const RawEntry* entry = parent.find(TIFFTAG_SUBIFD);
    if (entry == nullptr) return result;
    if (entry->count > most_sub_directories) {
      throw_slide_error(slide_.file.path(), "SubIFDs has " + std::to_string(entry->count) +
                                                " values, supported are up to " + std::to_string(most_sub_directories));
    }
    for (const std::uint64_t offset : raw_.values(*entry, "SubIFDs")) {
      result.push_back(examine(raw_.directory(offset)));
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
    return close(real(other.height), real(other.width) / aspect) ||
           close(real(other.width), real(other.height) * aspect);
  }

  void add_level(const RawDirectory& directory) {
    Level level;
    LevelDetail detail;
    read_level(raw_, directory, tiff_, slide_.file, options_, level, detail);
    if (const RawEntry* icc = directory.find(TIFFTAG_ICCPROFILE)) detail.icc = *icc;
    std::vector<Level>& levels = slide_.info.levels;
    if (!levels.empty()) {
      level.downsample = static_cast<double>(levels.front().width) / static_cast<double>(level.width);
    }
    levels.push_back(level);
    slide_.details.push_back(std::move(detail));
    slide_.pools.push_back(std::make_unique<TiffPool>());
  }

  void name_associated(const std::vector<Candidate>& main, const std::vector<const Candidate*>& levels) {
    for (std::size_t i = 0; i < main.size(); ++i) {
      const auto same = [&](const Candidate* level) { return level->raw.offset == main[i].raw.offset; };
      if (std::any_of(levels.begin(), levels.end(), same)) continue;
      std::string name = main[i].associated;
      // Aperio puts its thumbnail second, without saying so.
      if (name.empty()) name = i == 1 && !main[i].tiled ? "thumbnail" : "image " + std::to_string(i);
      slide_.info.associated.push_back(std::move(name));
    }
  }

  void describe(const RawDirectory& directory) {
    if (!tiff_.set_directory(directory.offset)) return;  // it was read before
    read_description(description_of(tiff_), slide_.info);
    if (!slide_.info.mpp && slide_.info.format == "tiff") slide_.info.mpp = mpp_by_resolution();
  }

  /// Plain TIFF: from XResolution. Above 20 um a pixel it is a printing resolution, which says nothing of the slide.
  std::optional<double> mpp_by_resolution() const {
    float resolution = 0.0F;
    std::uint16_t unit = RESUNIT_INCH;
    if (TIFFGetField(tiff_.get(), TIFFTAG_XRESOLUTION, &resolution) != 1) return std::nullopt;
    TIFFGetFieldDefaulted(tiff_.get(), TIFFTAG_RESOLUTIONUNIT, &unit);
    if (unit != RESUNIT_INCH && unit != RESUNIT_CENTIMETER) return std::nullopt;
    const double mpp = (unit == RESUNIT_INCH ? 25400.0 : 10000.0) / static_cast<double>(resolution);
    if (!(mpp > 0.0 && mpp <= 20.0)) return std::nullopt;
    return mpp;
  }

  Slide::Impl& slide_;
  const OpenOptions& options_;
  RawTiff raw_;
  TiffFile tiff_;
};

}  // namespace

void read_directories(Slide::Impl& slide, const OpenOptions& options) { DirectoryReader(slide, options).read(); }

}  // namespace slidestream
