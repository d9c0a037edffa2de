#include "slide/dicom/dicom_container.hpp"

#include <algorithm>
#include <map>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "slide/channels.hpp"
#include "slide/dicom/concatenation.hpp"
#include "slide/dicom/contradictions.hpp"
#include "slide/dicom/frame_colours.hpp"
#include "slide/dicom/frames.hpp"
#include "slide/dicom/instance.hpp"
#include "slide/dicom/instance_level.hpp"
#include "slide/dicom/level_sizes.hpp"
#include "slide/dicom/series.hpp"
#include "slide/icc_profile.hpp"
#include "slide/level_factor.hpp"
#include "slide/number_text.hpp"
#include "slide/open_budget.hpp"
#include "slide/pixel_size.hpp"
#include "slide/tile_limits.hpp"

namespace slidestream {

namespace {

using dicom::Instance;
using dicom::OpenFile;
using dicom::Refusal;

class DicomContainer final : public Container {
 public:
  /// Where a level's ICC profile lies.
  struct Profile {
    const File* file = nullptr;
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;
  };

  void add_profile(Profile profile) { profiles_.push_back(profile); }
  void add_associated(std::shared_ptr<const Slide> image) { associated_.push_back(std::move(image)); }

  IccProfile icc_profile(std::size_t level) const override {
    const Profile& own = profiles_.at(level);
    const Profile& profile = own.bytes == 0 ? profiles_.front() : own;
    if (profile.bytes == 0) return {};
    // Odd profiles have a byte that makes them even: a profile says its size itself.
    return read_icc_profile(*profile.file, profile.at, profile.bytes);
  }

  /// Levels are what their files say they are: one may be marked wrong.
  bool guesses_levels() const noexcept override { return true; }
  void make_associated(std::size_t level) override {
    profiles_.erase(profiles_.begin() + static_cast<std::ptrdiff_t>(level));
    associated_.push_back(nullptr);
  }

  AssociatedImage read_associated(std::size_t index, const std::string& name) const override {
    if (associated_.at(index) == nullptr) throw SlideError(name + " isn't like the slide, and isn't shown");
    const Slide& image = *associated_.at(index);
    const Level& level = image.info().levels.front();
    const auto fail = [&](const std::string& cause) {
      throw_slide_error(image.info().path, "the associated image " + name + " can't be read: " + cause);
    };
    if (static_cast<std::uint64_t>(level.width) > most_associated_pixels / static_cast<std::uint64_t>(level.height)) {
      fail("it has " + std::to_string(level.width) + " x " + std::to_string(level.height) +
           " pixels; expected 1 to 2^26");
    }
    AssociatedImage read;
    read.size = {level.width, level.height};
    read.pixels.resize(static_cast<std::size_t>(3 * level.width * level.height));
    read_rgb(image, 0, 0, 0, {read.pixels.data(), 3 * level.width, level.width, level.height, rgb_format});
    return read;
  }

 private:
  std::vector<Profile> profiles_;
  std::vector<std::shared_ptr<const Slide>> associated_;  ///< null: a level that wasn't like the slide
};

/// Reads one image: its level, and where its tiles lie.
class ImageReader {
 public:
  ImageReader(Slide::Impl& slide, const OpenOptions& options, OpenBudget& budget)
      : slide_(slide), options_(options), budget_(budget) {}

  /// \param files  of the image, in order; they go to the slide
  void read(const std::vector<OpenFile*>& files) {
    level_ = level_of(*files.front(), options_);
    budget_.take_level(static_cast<std::uint64_t>(level_.columns) * static_cast<std::uint64_t>(level_.rows));
    coding_.samples = static_cast<int>(files.front()->instance.samples);
    coding_.in_items = files.front()->instance.is_encapsulated();
    coding_.tiles.resize(static_cast<std::size_t>(level_.columns * level_.rows));
    std::int64_t before = 0;
    for (OpenFile* file : files) {
      check_part(*file, before, files.front()->instance);
      add_frames(*file);
      add_line(dicom::compare_places(*file, level_));
      before += file->instance.frames;
    }
    const Instance& first = files.front()->instance;
    if (first.organisation == "TILED_FULL" && before != level_.columns * level_.rows) {
      Refusal{*files.front()}("NumberOfFrames (0028,0008) is " + std::to_string(before) + " in all parts, and " +
                              std::to_string(level_.columns) + " x " + std::to_string(level_.rows) +
                              " tiles are TILED_FULL");
    }
    add_line(dicom::compare_count(files, level_, coding_));
    for (const OpenFile* file : files) {
      add_line(dicom::compare_lut_shape(file->instance));
      add_line(dicom::compare_rescale(file->instance));
      add_line(dicom::compare_indices(file->instance));
    }
    if (first.has_misplaced_icc) {
      add_line(
          "its ICC profile (0028,2000) lies outside of OpticalPathSequence (0048,0105), where it belongs: it counts");
    }
    add_line(dicom::compare_doubles(doubles_, first_double_, level_));
    // Labels and the like may lie in any way.
    if (first.flavour() == "VOLUME") {
      for (const OpenFile* file : files) add_line(dicom::compare_orientation(file->instance));
      add_line(dicom::compare_orientations(files));
    }
    add_line(dicom::compare_colour(level_, first.photometric, coding_, slide_.files, budget_));
    if (!slide_.info.levels.empty()) {
      level_.downsample = level_factor(slide_.info.levels.front().width, level_.width);
    }
    slide_.info.levels.push_back(level_);
    slide_.codings.push_back(std::move(coding_));
  }

 private:
  /// A contradiction is one line, however many levels have it.
  void add_line(std::string line) {
    std::vector<std::string>& lines = slide_.info.warnings;
    if (!line.empty() && std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }

  void check_part(const OpenFile& file, std::int64_t before, const Instance& first) const {
    const Refusal refuse(file);
    const Level own = level_of(file, options_);
    if (own.width != level_.width || own.height != level_.height || own.tile_width != level_.tile_width ||
        own.tile_height != level_.tile_height || own.codec != level_.codec || own.colour != level_.colour) {
      refuse("isn't coded like the part of its image before it");
    }
    dicom::check_organisation(file, first);
    if (dicom::have_different_paths(first, file.instance)) refuse.require(2, 1, "the number of optical paths");
    if (file.instance.frames_before != before) {
      refuse("ConcatenationFrameOffsetNumber (0020,9228) is " + std::to_string(file.instance.frames_before) +
             ", and the parts before have " + std::to_string(before) + " frames");
    }
    if (file.instance.frames > options_.max_tiles) {
      refuse("NumberOfFrames (0028,0008) " + std::to_string(file.instance.frames) + " is above input.max_tiles " +
             std::to_string(options_.max_tiles));
    }
  }

  /// Where frame `index` of an instance belongs.
  std::int64_t tile_of(const OpenFile& file, std::int64_t index) const {
    const Instance& instance = file.instance;
    if (instance.organisation == "TILED_FULL") return instance.frames_before + index;
    if (instance.positions.empty()) return 0;
    const Instance::Position& said = instance.positions[static_cast<std::size_t>(index)];
    const std::int64_t x = said.column - 1;
    const std::int64_t y = said.row - 1;
    if (x < 0 || y < 0 || x >= level_.width || y >= level_.height || x % level_.tile_width != 0 ||
        y % level_.tile_height != 0) {
      Refusal{file}("frame " + std::to_string(index + 1) + " is at column " + std::to_string(said.column) + ", row " +
                    std::to_string(said.row) + ", which isn't on the grid of tiles");
    }
    return y / level_.tile_height * level_.columns + x / level_.tile_width;
  }

  /// Frames at one place and several depths are several focal planes, whatever the rest says. A plane of its own may
  /// have another depth at each place.
  void note_depth(const OpenFile& file, std::size_t frame, std::size_t tile) {
    if (file.instance.positions.empty()) return;
    depths_.resize(coding_.tiles.size(), Instance::Position::no_depth);
    const double depth = file.instance.positions[frame].depth;
    // No frame begins where a file does.
    const bool has_frame = coding_.tiles[tile].offset != 0;
    if (has_frame && depth != depths_[tile]) Refusal{file}.require(2, 1, "the number of focal planes");
    depths_[tile] = depth;
  }

  void add_frames(OpenFile& file) {
    const Instance& instance = file.instance;
    const Refusal refuse(file);
    const bool is_full = instance.organisation == "TILED_FULL";
    // A single tile can only be at one place.
    const bool is_single = instance.positions.empty() && instance.frames == 1 && coding_.tiles.size() == 1;
    if (!is_full && !is_single && static_cast<std::int64_t>(instance.positions.size()) != instance.frames) {
      refuse("PerFrameFunctionalGroupsSequence (5200,9230) describes " + std::to_string(instance.positions.size()) +
             " frames, and NumberOfFrames (0028,0008) is " + std::to_string(instance.frames));
    }
    if (is_full && instance.frames > level_.columns * level_.rows - instance.frames_before) {
      refuse("NumberOfFrames (0028,0008) is " + std::to_string(instance.frames) + ", and the image has " +
             std::to_string(level_.columns) + " x " + std::to_string(level_.rows) + " tiles");
    }
    dicom::Reader reader(*file.file, file.name, budget_);
    std::vector<TileRange> ranges = frame_ranges(reader, instance);
    add_line(dicom::compare_length(instance));
    const std::uint64_t size = file.file->size();
    const std::uint64_t begin = slide_.files.add(std::move(file.file));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      TileRange& range = ranges[i];
      const bool is_inside = range.offset <= size && range.length <= size - range.offset;
      // What lies outside its own file must not be found in the next one.
      range.offset = is_inside ? begin + range.offset : nowhere;
      const auto tile = static_cast<std::size_t>(tile_of(file, static_cast<std::int64_t>(i)));
      note_depth(file, i, tile);
      if (coding_.tiles[tile].offset != 0 && doubles_++ == 0) first_double_ = static_cast<std::int64_t>(tile);
      coding_.tiles[tile] = range;
    }
  }

  /// In no file.
  static constexpr std::uint64_t nowhere = std::uint64_t{1} << 62;

  Slide::Impl& slide_;
  const OpenOptions& options_;
  OpenBudget& budget_;
  Level level_;
  LevelCoding coding_;
  std::vector<double> depths_;     ///< of the frame at each place; empty unless frames say where they are
  std::int64_t doubles_ = 0;       ///< frames at places that an earlier frame has
  std::int64_t first_double_ = 0;  ///< the tile of the first of them
};

class SeriesOpener {
 public:
  SeriesOpener(Slide::Impl& slide, const OpenOptions& options)
      : slide_(slide), options_(options), path_(slide.info.path) {}

  void open(std::unique_ptr<File> named) {
    const dicom::Series found = dicom::series_of(path_, options_.give_up);
    const std::vector<dicom::SeriesFile>& series = found.files;
    if (!found.unreadable.empty()) {
      slide_.info.warnings.push_back(
          "files of its folder can't be read, and may be levels of it: " + std::to_string(found.unreadable.size()) +
          ", the first " + without_control_characters(found.unreadable.front()));
    }
    if (series.size() > most_files) {
      throw_slide_error(path_, "its series has " + std::to_string(series.size()) + " files; supported are up to " +
                                   std::to_string(most_files));
    }
    std::uint64_t size = 0;
    for (const dicom::SeriesFile& each : series) {
      OpenFile& file = files_.emplace_back();
      const bool is_named = each.path == path_;
      file.file = is_named ? std::move(named) : std::make_unique<File>(each.path, opening_retries(), options_.give_up);
      file.name = is_named ? path_.string() : path_.string() + ": " + each.path.filename().string();
      size += file.file->size();
    }
    OpenBudget budget(path_, size, options_);
    sort_out(series.front().series, budget);
    read_levels(budget);
    const Colour colour = slide_.info.levels.front().colour;
    chosen_channel(path_, Channels{1, 1, {}, colour == Colour::rgb || colour == Colour::ycbcr}, options_);
    read_associated(budget);
    slide_.info.format = "dicom";
    slide_.info.container = "DICOM";
    slide_.container = std::move(container_);
  }

 private:
  /// Each has a descriptor while the slide is open.
  static constexpr std::size_t most_files = 256;

  int opening_retries() const noexcept { return options_.retry_opening ? options_.retries : 0; }

  /// Reads the files, and says which are for what.
  void sort_out(const std::string& series, OpenBudget& budget) {
    std::map<std::string, std::uint64_t> seen;  // bytes of the file, by SOPInstanceUID
    const OpenFile* other = nullptr;            // the largest of another flavour
    for (OpenFile& file : files_) {
      dicom::Reader reader(*file.file, file.name, budget);
      file.instance = read_instance(reader, dicom::Part::whole);
      const Instance& instance = file.instance;
      if (instance.sop_instance.empty()) reader.refuse("SOPInstanceUID (0008,0018) is missing");
      // A file that was replaced meanwhile is of another series.
      if (instance.series != series) continue;
      const auto [same, is_new] = seen.emplace(instance.sop_instance, file.file->size());
      if (!is_new && same->second != file.file->size()) {
        reader.refuse("another file of its folder has its SOPInstanceUID (0008,0018), and isn't a copy of it");
      }
      if (!is_new) continue;
      const std::string contradiction = dicom::compare_frame_type(instance);
      std::vector<std::string>& lines = slide_.info.warnings;
      if (!contradiction.empty() && std::ranges::find(lines, contradiction) == lines.end()) {
        lines.push_back(contradiction);
      }
      if (instance.flavour() == "VOLUME") {
        levels_.push_back(&file);
        continue;
      }
      if (other == nullptr || pixels_of(instance) > pixels_of(other->instance)) other = &file;
      if (const char* name = associated_name(instance.flavour())) {
        associated_.emplace_back(name, &file);
      }
    }
    std::ranges::stable_sort(associated_, {}, [](const auto& image) { return std::string_view(image.first); });
    if (levels_.empty()) throw_slide_error(path_, "its series has no image of flavour VOLUME (ImageType (0008,0008))");
    if (other == nullptr) return;
    const auto* largest =
        *std::ranges::max_element(levels_, {}, [](const OpenFile* file) { return pixels_of(file->instance); });
    const std::string line = dicom::compare_flavours(other->instance, largest->instance);
    if (!line.empty()) slide_.info.warnings.push_back(other->file->path().filename().string() + ": " + line);
  }

  static double pixels_of(const Instance& instance) {
    return static_cast<double>(instance.width) * static_cast<double>(instance.height);
  }

  static const char* associated_name(const std::string& flavour) {
    if (flavour == "LABEL") return "label";
    if (flavour == "OVERVIEW") return "macro";
    return flavour == "THUMBNAIL" ? "thumbnail" : nullptr;
  }

  void read_levels(OpenBudget& budget) {
    const std::vector<std::vector<OpenFile*>> all = images();
    read_pixel_size(all);
    for (const std::vector<OpenFile*>& image : all) {
      const Instance& instance = image.front()->instance;
      const bool is_largest = slide_.info.levels.empty();
      // A level of another path shows something else.
      if (dicom::have_different_paths(all.front().front()->instance, instance)) {
        Refusal{*image.front()}.require(2, 1, "the number of optical paths");
      }
      container_->add_profile({image.front()->file.get(), instance.icc_at, instance.icc_bytes});
      ImageReader(slide_, options_, budget).read(image);
      if (is_largest) continue;
      slide_.codings.back().said_factor = dicom::factor_by_spacing(all.front().front()->instance, instance);
      compare_level(instance);
    }
  }

  /// \param images  the largest first
  /// \param is_own  the largest image says the size, so that nobody needs those of smaller levels
  void warn_of_unsound_spacing(const std::vector<const Instance*>& images, bool is_own) {
    const auto is_unsound = [](const Instance* image) { return image->has_unsound_spacing; };
    const bool is_of_largest = is_unsound(images.front());
    if (!is_of_largest && (is_own || std::ranges::none_of(images, is_unsound))) return;
    slide_.info.warnings.push_back(std::string("PixelSpacing (0028,0030)") +
                                   (is_of_largest ? "" : " of a smaller level") +
                                   " isn't two numbers above 0: it is passed over");
  }

  /// \param images  the largest first
  void read_pixel_size(const std::vector<std::vector<OpenFile*>>& images) {
    SlideInfo& info = slide_.info;
    const std::vector<OpenFile*>& image = images.front();
    const Instance& instance = image.front()->instance;
    std::vector<const Instance*> firsts;
    firsts.reserve(images.size());
    for (const std::vector<OpenFile*>& each : images) firsts.push_back(&each.front()->instance);
    info.magnification = instance.magnification;
    if (std::ranges::any_of(image, [](const OpenFile* part) { return part->instance.spacings_differ; })) {
      info.warnings.push_back("PixelSpacing (0028,0030) differs between its frames: it is passed over");
      return;
    }
    // Pixels of a scanner are about 10 micrometres divided by the power.
    constexpr double most_by_power = 400.0;
    const double most =
        std::clamp(most_by_power / instance.magnification.value_or(0.1), most_scanned_pixel_size, most_pixel_size);
    const auto size = [](const std::optional<double>& mm, std::int64_t pixels) {
      return mm && pixels > 0 ? std::optional(*mm * 1000.0 / static_cast<double>(pixels)) : std::nullopt;
    };
    constexpr const char* spacing = "PixelSpacing (0028,0030)";
    SaidPixelSize said{size(instance.mm_x, 1), size(instance.mm_y, 1)};
    const bool is_own = said.x.has_value();
    warn_of_unsound_spacing(firsts, is_own);
    if (!is_own) said = dicom::size_by_levels(firsts, info);
    const std::string place = is_own ? spacing : std::string(spacing) + " of smaller levels";
    if (!are_far_apart(said)) {
      // Both or none: one line is enough.
      said.x = said_pixel_size(said.x, place, info, most);
      said.y = said.x ? said_pixel_size(said.y, place, info, most) : std::nullopt;
      if (!said.y) said.x.reset();
    }
    if (instance.has_unsound_volume && (are_far_apart(said) || (!said.x && !said.y))) {
      info.warnings.emplace_back(
          "ImagedVolumeWidth (0048,0001) or ImagedVolumeHeight (0048,0002) can't be read as a number above 0: it is "
          "passed over");
    }
    const SaidPixelSize volume =
        said_pixel_sizes({size(instance.volume_mm_x, instance.width), size(instance.volume_mm_y, instance.height)},
                         "a pixel's part of ImagedVolumeWidth (0048,0001)",
                         "a pixel's part of ImagedVolumeHeight (0048,0002)", info, most);
    settle_pixel_size(info, said, place, volume, "the imaged volume (0048,0001)");
    if (!said.x && info.mpp) dicom::compare_volumes(firsts, info);
    if (!info.mpp && instance.has_misplaced_spacing) {
      info.warnings.push_back(std::string(spacing) +
                              " stands outside of the functional groups, where it says nothing: it is passed over");
    }
    if (!is_own || !said.x || are_far_apart(said)) return;
    spacing_ = said;
    compare_with_others(said, spacing, image);
  }

  /// Adds a line about the first level whose PixelSpacing isn't the largest image's by their sizes. A level's sides may
  /// be rounded, or padded to whole tiles.
  void compare_level(const Instance& level) {
    if (!spacing_.x || !spacing_.y || !level.mm_x || !level.mm_y || spacings_differ_) return;
    const std::vector<Level>& levels = slide_.info.levels;
    const Level& own = levels.back();
    LevelCoding& coding = slide_.codings.back();
    const auto factor = static_cast<double>(coding.said_factor);
    const bool is_said_by_size = level_factor(levels.front().width, own.width) == factor &&
                                 level_factor(levels.front().height, own.height) == factor;
    if (is_said_by_size) coding.said_factor = 0;
    const auto by_level =
        contrary_size_by_level(spacing_, levels.front(), {*level.mm_x * 1000.0, *level.mm_y * 1000.0}, levels.back());
    if (!by_level) return;
    const std::size_t lines = slide_.info.warnings.size();
    spacings_differ_ = coding.said_factor == 0;
    compare_pixel_sizes(slide_.info, spacing_, "PixelSpacing (0028,0030) of the largest image", *by_level,
                        "that of the image of " + std::to_string(level.width) + " x " + std::to_string(level.height) +
                            " pixels gives it");
    // Padding of any size may explain it, which pixels tell.
    if (spacings_differ_ || slide_.info.warnings.size() == lines) return;
    coding.contradiction = std::move(slide_.info.warnings.back());
    slide_.info.warnings.pop_back();
  }

  /// Adds lines about what frames, and the other parts of a concatenation, say beside the size that counts.
  void compare_with_others(const SaidPixelSize& said, const std::string& spacing, const std::vector<OpenFile*>& image) {
    const auto size = [](double mm_x, double mm_y) { return SaidPixelSize{mm_x * 1000.0, mm_y * 1000.0}; };
    const auto own =
        std::ranges::find_if(image, [](const OpenFile* part) { return part->instance.own_spacing.has_value(); });
    if (own != image.end()) {
      const Instance& part = (*own)->instance;
      compare_pixel_sizes(slide_.info, size(*part.mm_x, *part.mm_y), spacing + " of all frames",
                          size(part.own_spacing->mm_x, part.own_spacing->mm_y),
                          "frame " + std::to_string(part.own_spacing->frame + 1));
    }
    for (const OpenFile* file : image) {
      const Instance& part = file->instance;
      if (!part.mm_x || !are_contrary(said, size(*part.mm_x, *part.mm_y))) continue;
      compare_pixel_sizes(slide_.info, said, spacing + " of part 1", size(*part.mm_x, *part.mm_y),
                          "that of part " + std::to_string(part.part));
      return;
    }
  }

  /// The levels' files, image by image, the largest image first.
  std::vector<std::vector<OpenFile*>> images() const {
    std::map<std::string, std::vector<OpenFile*>> by_image;
    for (OpenFile* file : levels_) {
      const Instance& instance = file->instance;
      by_image[instance.concatenation.empty() ? "file " + instance.sop_instance : instance.concatenation].push_back(
          file);
    }
    std::vector<std::vector<OpenFile*>> images;
    for (auto& [uid, files] : by_image) {
      std::ranges::sort(files, {}, [](const OpenFile* file) { return file->instance.part; });
      dicom::check_parts(files);
      images.push_back(std::move(files));
    }
    const auto size_of = [](const std::vector<OpenFile*>& image) {
      const Instance& instance = image.front()->instance;
      return std::tuple(-instance.width, -instance.height, instance.mm_x.value_or(0.0));
    };
    std::ranges::sort(images, {}, size_of);
    // Small levels in whole tiles may have one size, and pixels of several.
    const auto is_twice = [&](const std::vector<OpenFile*>& one, const std::vector<OpenFile*>& next) {
      const Instance& a = one.front()->instance;
      const Instance& b = next.front()->instance;
      if (a.width != b.width || a.height != b.height) return false;
      const Instance& largest = images.front().front()->instance;
      return &a == &largest || dicom::factor_by_spacing(a, b) == 0 || dicom::factor_by_spacing(largest, b) == 0;
    };
    const auto twice = std::ranges::adjacent_find(images, is_twice);
    if (twice != images.end()) {
      const Instance& instance = twice->front()->instance;
      throw_slide_error(path_, "its series has two images of " + std::to_string(instance.width) + " x " +
                                   std::to_string(instance.height) + " pixels");
    }
    return images;
  }

  /// One that is damaged is no reason to refuse the slide.
  void read_associated(OpenBudget& budget) {
    for (const auto& [name, file] : associated_) {
      auto image = std::make_unique<Slide::Impl>(options_);
      image->info.path = path_;
      image->info.format = "dicom";
      image->container = std::make_unique<DicomContainer>();
      try {
        ImageReader(*image, options_, budget).read({file});
      } catch (const StoppedError&) {
        throw;
      } catch (const StorageError&) {
        throw;
      } catch (const SlideError& error) {
        slide_.info.warnings.push_back("the image " + std::string(name) +
                                       " can't be read: " + without_path(error.what()));
        continue;
      }
      image->coded = image->info.levels;
      image->files.set_retries(options_.retries);
      for (const std::string& line : image->info.warnings) {
        slide_.info.warnings.push_back("the image " + std::string(name) + ": " + line);
      }
      slide_.info.associated.emplace_back(name);
      container_->add_associated(make_slide(std::move(image)));
    }
  }

  std::string without_path(std::string text) const {
    const std::string prefix = path_.string() + ": ";
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
    return text;
  }

  Slide::Impl& slide_;
  const OpenOptions& options_;
  const std::filesystem::path path_;
  std::vector<OpenFile> files_;
  std::vector<OpenFile*> levels_;
  SaidPixelSize spacing_;         ///< PixelSpacing of the largest image, where it counts
  bool spacings_differ_ = false;  ///< a line says that a level's isn't that
  std::vector<std::pair<const char*, OpenFile*>> associated_;
  std::unique_ptr<DicomContainer> container_ = std::make_unique<DicomContainer>();
};

}  // namespace

bool is_dicom(std::span<const std::byte> first, const File&) { return dicom::has_prefix(first); }

void open_dicom(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options) {
  SeriesOpener(slide, options).open(std::move(file));
}

}  // namespace slidestream
