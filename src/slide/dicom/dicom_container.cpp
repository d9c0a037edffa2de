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
#include "slide/dicom/data_set.hpp"
#include "slide/dicom/image_reader.hpp"
#include "slide/dicom/instance.hpp"
#include "slide/dicom/instance_level.hpp"
#include "slide/dicom/level_sizes.hpp"
#include "slide/dicom/pixel_spacing.hpp"
#include "slide/dicom/series.hpp"
#include "slide/icc_profile.hpp"
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

  AssociatedImage read_associated(const Slide::Impl& slide, std::size_t index) const override {
    const std::string& name = slide.info.associated.at(index);
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
      if (other_ == nullptr || instance.area() > other_->instance.area()) other_ = &file;
      if (const char* name = associated_name(instance)) associated_.emplace_back(name, &file);
    }
    if (levels_.empty()) throw_slide_error(path_, "its series has no image of flavour VOLUME (ImageType (0008,0008))");
  }

  /// A thumbnail is of the levels. One that shows the label is of the whole glass.
  static const char* associated_name(const Instance& instance) {
    const std::string flavour = instance.flavour();
    if (flavour == "LABEL") return "label";
    if (flavour == "OVERVIEW") return "macro";
    if (flavour == "THUMBNAIL") return instance.shows_label ? "macro" : "thumbnail";
    return nullptr;
  }

  void read_levels(OpenBudget& budget) {
    const std::vector<std::vector<OpenFile*>> all = images();
    if (other_ != nullptr) {
      const std::string line = dicom::compare_flavours(other_->instance, all.front().front()->instance);
      if (!line.empty()) slide_.info.warnings.push_back(other_->file->path().filename().string() + ": " + line);
    }
    SaidPixelSize spacing = dicom::read_pixel_size(all, slide_.info);
    for (const std::vector<OpenFile*>& image : all) {
      const Instance& instance = image.front()->instance;
      const bool is_largest = slide_.info.levels.empty();
      // A level of another path shows something else.
      if (dicom::have_different_paths(all.front().front()->instance, instance)) {
        Refusal{*image.front()}.require(2, 1, "the number of optical paths");
      }
      container_->add_profile({image.front()->file.get(), instance.icc_at, instance.icc_bytes});
      dicom::read_image(slide_, options_, budget, image);
      if (is_largest) continue;
      slide_.codings.back().said_factor = dicom::factor_by_spacing(all.front().front()->instance, instance);
      // A line about one level is enough.
      if (dicom::compare_spacing(slide_, spacing, instance)) spacing = {};
    }
    std::string origins = dicom::compare_origins(all);
    if (!origins.empty()) slide_.info.warnings.push_back(std::move(origins));
  }

  /// The levels' files, image by image, the largest image first.
  std::vector<std::vector<OpenFile*>> images() {
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
    leave_out_labels(images);
    const auto by_size = [](const std::vector<OpenFile*>& one, const std::vector<OpenFile*>& other) {
      const Instance& a = one.front()->instance;
      const Instance& b = other.front()->instance;
      return std::tuple(b.area(), b.width, a.mm_x.value_or(0.0)) < std::tuple(a.area(), a.width, b.mm_x.value_or(0.0));
    };
    std::ranges::sort(images, by_size);
    leave_out_other_shapes(images);
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

  /// Levels of one slide all show its label, or none does. One that shows it beside others becomes an associated image,
  /// whatever its size.
  void leave_out_labels(std::vector<std::vector<OpenFile*>>& images) {
    const auto shows_label = [](const std::vector<OpenFile*>& files) {
      return std::ranges::any_of(files, [](const OpenFile* file) { return file->instance.shows_label; });
    };
    std::vector<std::string>& lines = slide_.info.warnings;
    if (std::ranges::all_of(images, shows_label)) {
      lines.emplace_back(
          "all its images show the slide's label (SpecimenLabelInImage (0048,0010) is YES): results show it, too");
      return;
    }
    std::erase_if(images, [&](const std::vector<OpenFile*>& files) {
      if (!shows_label(files)) return false;
      const Instance& instance = files.front()->instance;
      lines.push_back("the image of " + std::to_string(instance.width) + " x " + std::to_string(instance.height) +
                      " pixels shows the slide's label (SpecimenLabelInImage (0048,0010) is YES), and others don't: it "
                      "is no level");
      if (files.size() == 1) associated_.emplace_back("label", files.front());
      return true;
    });
  }

  /// A level is larger than level 0 along no axis.
  void leave_out_other_shapes(std::vector<std::vector<OpenFile*>>& images) {
    const Instance& largest = images.front().front()->instance;
    std::erase_if(images, [&](const std::vector<OpenFile*>& files) {
      const Instance& instance = files.front()->instance;
      if (instance.width <= largest.width && instance.height <= largest.height) return false;
      slide_.info.warnings.push_back("the image of " + std::to_string(instance.width) + " x " +
                                     std::to_string(instance.height) +
                                     " pixels hasn't the shape of the slide: it is no level");
      return true;
    });
  }

  /// One that is damaged is no reason to refuse the slide.
  void read_associated(OpenBudget& budget) {
    std::ranges::stable_sort(associated_, {}, [](const auto& image) { return std::string_view(image.first); });
    for (const auto& [name, file] : associated_) {
      auto image = std::make_unique<Slide::Impl>(options_);
      image->info.path = path_;
      image->info.format = "dicom";
      image->container = std::make_unique<DicomContainer>();
      try {
        dicom::read_image(*image, options_, budget, {file});
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
  const OpenFile* other_ = nullptr;  ///< the largest of another flavour
  std::vector<std::pair<const char*, OpenFile*>> associated_;
  std::unique_ptr<DicomContainer> container_ = std::make_unique<DicomContainer>();
};

}  // namespace

bool is_dicom(std::span<const std::byte> first, const File&) { return dicom::has_prefix(first); }

void open_dicom(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options) {
  SeriesOpener(slide, options).open(std::move(file));
}

}  // namespace slidestream
