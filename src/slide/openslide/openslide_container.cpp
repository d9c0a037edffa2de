#include "slide/openslide/openslide_container.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/positive_number.hpp"
#include "config/suggest.hpp"
#include "slide/channels.hpp"
#include "slide/decode_memory.hpp"
#include "slide/formats.hpp"
#include "slide/icc_profile.hpp"
#include "slide/level_factor.hpp"
#include "slide/open_budget.hpp"
#include "slide/openslide/argb.hpp"
#include "slide/openslide/focal_planes.hpp"
#include "slide/openslide/handles.hpp"
#include "slide/openslide/kinds.hpp"
#include "slide/openslide/library.hpp"
#include "slide/openslide/named_files.hpp"
#include "slide/openslide/tiff_levels.hpp"
#include "slide/pixel_size.hpp"
#include "slide/pixels.hpp"
#include "slide/tiff/raw_directory.hpp"
#include "slide/tiff/tiff_container.hpp"
#include "slide/tile_job.hpp"
#include "slide/tile_limits.hpp"

namespace slidestream {

namespace {

using openslide::Background;
using openslide::Functions;
using openslide::Handle;
using openslide::Handles;
using openslide::Library;

/// About the side of what is read at a time, where the file's own tiles have a known size.
constexpr std::int64_t usual_tile = 512;
/// And where they have not, or are larger: of large pieces fewer of the file's tiles are decoded twice.
constexpr std::int64_t largest_tile = 1024;

/// What all handles of a slide keep of decoded tiles together, in bytes, but for files with larger tiles: two of those.
constexpr std::size_t least_cache = std::size_t{32} << 20;
/// Pixels of the largest tile of a file.
constexpr std::uint64_t most_pixels_behind = std::uint64_t{1} << 28;

template <class Whole>
std::optional<Whole> number_of(const std::string& text, int base = 10) {
  Whole value{};
  const std::from_chars_result result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

Background background_of(const Handle& handle) {
  const std::string text = handle.property("openslide.background-color");
  const auto value = text.size() == 6 ? number_of<std::uint32_t>(text, 16) : std::nullopt;
  if (!value) return {};
  return {static_cast<std::uint8_t>(*value >> 16), static_cast<std::uint8_t>(*value >> 8),
          static_cast<std::uint8_t>(*value)};
}

/// A level's place in the library's coordinates, which are pixels of level 0.
struct Scale {
  std::int32_t level = 0;  ///< the library's number
  double downsample = 1.0;

  /// Whether every pixel of the level begins at a whole pixel of level 0: then any rectangle gives the same pixels.
  bool is_exact() const noexcept { return downsample == std::floor(downsample); }
  std::int64_t at_level_0(std::int64_t pixel) const noexcept {
    return std::llround(static_cast<double>(pixel) * downsample);
  }
};

class OpenSlideContainer final : public Container {
  /// What `work` makes with a handle, which is kept unless it failed. \throws SlideError where there is none
  template <class Work>
  auto with_handle(const Work& work) const {
    std::unique_ptr<Handle> handle;
    try {
      handle = handles_.take();
    } catch (const Error& error) {
      throw_slide_error(path_, handles_.library().name() + ": " + error.what());
    }
    auto result = work(*handle);
    if (handle->error().empty()) handles_.give_back(std::move(handle));
    return result;
  }

 public:
  OpenSlideContainer(std::shared_ptr<const Library> library, const File& file)
      : file_(file), path_(file.path()), handles_(std::move(library), file.path(), file.descriptor()) {}

  Handles& handles() noexcept { return handles_; }
  void set_background(const Background& background) { background_ = background; }
  void add_level(Scale scale) { scales_.push_back(scale); }
  void set_guesses_levels(bool guesses) { guesses_levels_ = guesses; }

  bool guesses_levels() const noexcept override { return guesses_levels_; }
  void make_associated(std::size_t level) override {
    scales_.erase(scales_.begin() + static_cast<std::ptrdiff_t>(level));
    ++dropped_levels_;
  }

  /// The tag of the profile of all levels, where the library gives none. The file outlives this.
  void set_icc(const RawEntry& entry) { icc_ = entry; }

  IccProfile icc_profile(std::size_t) const override {
    IccProfile profile = profile_of_library();
    return profile.bytes.empty() && profile.fault.empty() ? icc_profile_of(file_, icc_) : profile;
  }

  AssociatedImage read_associated(const Slide::Impl& slide, std::size_t index) const override {
    const std::string& name = slide.info.associated.at(index);
    if (index + dropped_levels_ >= slide.info.associated.size()) {
      throw_slide_error(path_, "the " + name + " isn't like the slide, and isn't shown");
    }
    const std::string what = "the associated image " + one_line(name);
    const auto fail = [&](const std::string& cause) { throw_slide_error(path_, what + " can't be read: " + cause); };
    AssociatedImage image;
    image.size = with_handle([&](const Handle& handle) {
      Size size;
      handle.call().get_associated_image_dimensions(handle.get(), name.c_str(), &size.width, &size.height);
      return size;
    });
    const std::int64_t width = image.size.width, height = image.size.height;
    if (width <= 0 || height <= 0 ||
        static_cast<std::uint64_t>(width) > most_associated_pixels / static_cast<std::uint64_t>(height)) {
      fail("it has " + std::to_string(width) + " x " + std::to_string(height) + " pixels; expected 1 to 2^26");
    }
    const auto count = static_cast<std::size_t>(width * height);
    // As often again the library itself. Who holds a handle doesn't wait for memory.
    const DecodeMemory::Lease memory = memory_for(slide, what, 2 * sizeof(std::uint32_t) * count);
    const std::vector<std::uint32_t> pixels = with_handle([&](const Handle& handle) {
      std::vector<std::uint32_t> read(count);
      handle.call().read_associated_image(handle.get(), name.c_str(), read.data());
      if (const std::string error = handle.error(); !error.empty()) fail(error);
      return read;
    });
    image.pixels.resize(3 * count);
    openslide::to_rgb(image.pixels.data(), pixels.data(), width * height, {});
    return image;
  }

  std::uint64_t kept_bytes() const noexcept override { return handles_.cache_bytes(); }

  void decode(const TileJob& job, std::span<const std::byte>, TileScratch& scratch) const override {
    const DecodeMemory::Lease memory =
        memory_for(job, decoding_bytes(job.slide.coded_level(job.level_index), job.coding));
    const Level& level = job.level;
    const Scale& scale = scales_[job.level_index];
    // Where pixels of the level lie between pixels of level 0, a tile has but one beginning.
    const std::int64_t skip_x = scale.is_exact() ? job.from_x : 0;
    const std::int64_t skip_y = scale.is_exact() ? job.from_y : 0;
    const std::int64_t width = std::min(job.from_x + job.out.width, job.demand.inside_width) - skip_x;
    const std::int64_t height = std::min(job.from_y + job.out.height, job.demand.inside_height) - skip_y;
    if (width > 0 && height > 0) {
      const std::int64_t x = scale.at_level_0(job.index % level.columns * level.tile_width + skip_x);
      const std::int64_t y = scale.at_level_0(job.index / level.columns * level.tile_height + skip_y);
      // A row of RGB behind the pixels.
      const auto pixels = static_cast<std::size_t>(width * height);
      const std::size_t bytes = 4 * pixels + static_cast<std::size_t>(3 * width);
      if (bytes > scratch.capacity) {
        scratch.samples = std::make_unique_for_overwrite<std::byte[]>(bytes);
        scratch.capacity = bytes;
      }
      auto* const argb = reinterpret_cast<std::uint32_t*>(scratch.samples.get());
      auto* const rgb = reinterpret_cast<std::uint8_t*>(argb + pixels);
      read(argb, x, y, scale.level, width, height);
      for (std::int64_t row = job.from_y - skip_y; row < height; ++row) {
        const std::int64_t left = job.from_x - skip_x;
        if (width <= left) break;
        openslide::to_rgb(rgb, argb + row * width + left, width - left, background_);
        interleaved_to_pixels(job.row(skip_y + row), rgb, width - left, 3, Colour::rgb, job.out.format);
        if (std::uint8_t* to = job.luminance_row(skip_y + row)) {
          interleaved_to_pixels(to, rgb, width - left, 3, Colour::rgb, luminance_format);
        }
      }
    }
    whiten_beyond(job, job.demand.inside_width, job.demand.inside_height);
  }

 private:
  IccProfile profile_of_library() const {
    return with_handle([](const Handle& handle) -> IccProfile {
      const Functions& call = handle.call();
      if (call.get_icc_profile_size == nullptr) return {};
      const std::int64_t size = call.get_icc_profile_size(handle.get());
      if (size <= 0) return {};
      if (std::string fault = icc_size_fault(static_cast<std::uint64_t>(size)); !fault.empty()) {
        IccProfile profile;
        profile.fault = std::move(fault);
        return profile;
      }
      std::vector<std::byte> bytes(static_cast<std::size_t>(size));
      call.read_icc_profile(handle.get(), bytes.data());
      if (std::string error = handle.error(); !error.empty()) {
        IccProfile profile;
        profile.fault = std::move(error);
        return profile;
      }
      return checked_icc_profile(std::move(bytes));
    });
  }

  /// \throws TileError with the library's words; the handle isn't used again then
  void read(std::uint32_t* to, std::int64_t x, std::int64_t y, std::int32_t level, std::int64_t width,
            std::int64_t height) const {
    try {
      std::unique_ptr<Handle> handle = handles_.take();
      handle->call().read_region(handle->get(), to, x, y, level, width, height);
      if (const std::string error = handle->error(); !error.empty()) throw Error(error);
      handles_.give_back(std::move(handle));
    } catch (const Error& error) {
      throw TileError(handles_.library().name() + ": " + error.what());
    }
  }

  const File& file_;
  const std::filesystem::path path_;
  mutable Handles handles_;
  RawEntry icc_;
  Background background_;
  std::vector<Scale> scales_;
  bool guesses_levels_ = false;
  std::size_t dropped_levels_ = 0;  ///< the last of the associated images
};

/// Reads what a slide is from an open handle.
class Opener {
 public:
  Opener(Slide::Impl& slide, const Handle& handle, const OpenOptions& options)
      : slide_(slide), handle_(handle), options_(options), path_(slide.info.path) {}

  void read(OpenSlideContainer& container) {
    chosen_channel(path_, Channels{1, 1, {}, true}, options_);  // RGB: one that is chosen is refused
    const OpenBudget budget(path_, 0, options_);
    read_levels(container);
    container.handles().set_cache(std::max<std::size_t>(least_cache, 8 * most_behind_), handle_);
    budget.check();
    const auto number = [&](const char* name) { return positive_number(handle_.property(name)); };
    settle_pixel_size(slide_.info,
                      said_pixel_sizes({number("openslide.mpp-x"), number("openslide.mpp-y")}, "openslide.mpp-x",
                                       "openslide.mpp-y", slide_.info),
                      "OpenSlide", {}, {});
    slide_.info.magnification = number("openslide.objective-power");
    slide_.info.format = handle_.property("openslide.vendor");
    container.set_background(background_of(handle_));
    read_names();
    if (const std::string error = handle_.error(); !error.empty()) throw Error(error);
  }

 private:
  void read_levels(OpenSlideContainer& container) {
    const Functions& call = handle_.call();
    const std::int32_t count = call.get_level_count(handle_.get());
    if (count <= 0) throw Error(handle_.error().empty() ? "the slide has no level" : handle_.error());
    OpenBudget budget(path_, 0, options_);
    for (std::int32_t i = 0; i < count; ++i) {
      Level level;
      call.get_level_dimensions(handle_.get(), i, &level.width, &level.height);
      if (level.width <= 0 || level.height <= 0) {
        throw Error("level " + std::to_string(i) + " has " + std::to_string(level.width) + " x " +
                    std::to_string(level.height) + " pixels");
      }
      if (level.width > options_.max_pixels / level.height) {
        throw Error("level " + std::to_string(i) + " of " + std::to_string(level.width) + " x " +
                    std::to_string(level.height) + " pixels is more than input.max_pixels " +
                    std::to_string(options_.max_pixels));
      }
      const std::string of_level = "openslide.level[" + std::to_string(i) + "].tile-";
      const std::int64_t own_width = own_side(of_level + "width");
      const std::int64_t own_height = own_side(of_level + "height");
      const std::uint64_t behind = static_cast<std::uint64_t>(own_width) * static_cast<std::uint64_t>(own_height);
      if (behind > most_pixels_behind) {
        throw Error("level " + std::to_string(i) + " is in tiles of " + std::to_string(own_width) + " x " +
                    std::to_string(own_height) + " pixels; supported are up to 2^28");
      }
      most_behind_ = std::max<std::size_t>(most_behind_, behind);
      level.tile_width = tile_side(own_width);
      level.tile_height = tile_side(own_height);
      level.columns = (level.width + level.tile_width - 1) / level.tile_width;
      level.rows = (level.height + level.tile_height - 1) / level.tile_height;
      level.codec = Codec::openslide;
      level.colour = Colour::rgb;
      budget.take_level(static_cast<std::uint64_t>(level.columns) * static_cast<std::uint64_t>(level.rows));
      if (!slide_.info.levels.empty()) {
        level.downsample = level_factor(slide_.info.levels.front().width, level.width);
      }
      LevelCoding coding;
      coding.samples = 3;
      coding.pixels_behind = behind;
      // The library reads tiles itself. One byte of the file stands for each, so that every tile is a tile of a file.
      coding.tiles.assign(static_cast<std::size_t>(level.columns * level.rows), {1, 1});
      const double downsample = call.get_level_downsample(handle_.get(), i);
      if (!(downsample >= 1.0)) throw Error("level " + std::to_string(i) + " has no downsampling factor");
      container.add_level({i, downsample});
      slide_.info.levels.push_back(level);
      slide_.codings.push_back(std::move(coding));
    }
  }

  /// Of the file's tiles; 0: not known. Larger than any level may be: the largest number whose square fits.
  std::int64_t own_side(const std::string& property) const {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    return std::clamp<std::int64_t>(number_of<std::int64_t>(handle_.property(property)).value_or(0), 0, most);
  }

  /// As many whole tiles of the file as make about `usual_tile`, so that none is decoded twice.
  static std::int64_t tile_side(std::int64_t side) {
    if (side <= 0 || side > largest_tile) return largest_tile;
    return side * std::max<std::int64_t>(1, (usual_tile + side / 2) / side);
  }

  void read_names() {
    constexpr std::size_t most_properties = 4096;
    constexpr std::size_t most_images = 64;
    constexpr std::size_t most_value = 1024;
    const Functions& call = handle_.call();
    const char* const* name = call.get_property_names(handle_.get());
    for (std::size_t i = 0; name != nullptr && *name != nullptr && i < most_properties; ++name, ++i) {
      if (std::string_view(*name).starts_with("openslide.")) continue;
      slide_.info.properties[*name] = handle_.property(*name).substr(0, most_value);
    }
    const char* const* image = call.get_associated_image_names(handle_.get());
    for (std::size_t i = 0; image != nullptr && *image != nullptr && i < most_images; ++image, ++i) {
      slide_.info.associated.emplace_back(*image);
    }
  }

  Slide::Impl& slide_;
  const Handle& handle_;
  const OpenOptions& options_;
  const std::filesystem::path& path_;
  std::size_t most_behind_ = 0;  ///< pixels of the largest tile of the file
};

/// Bytes of all files of the slide.
std::uint64_t size_of_files(const std::filesystem::path& path) {
  std::uint64_t bytes = 0;
  for (const std::filesystem::path& file : openslide::files_of(path)) {
    std::error_code code;
    const std::uintmax_t size = std::filesystem::file_size(file, code);
    if (!code) bytes += size;
  }
  return bytes;
}

std::size_t focal_planes_of(const openslide::Kind* kind, const File& file, const Handle& handle) {
  if (kind != nullptr && kind->focal_planes != nullptr) return kind->focal_planes(file);
  return openslide::planes_by_properties([&handle](const std::string& name) { return handle.property(name); });
}

}  // namespace

bool is_for_openslide(std::span<const std::byte> first, const File& file) {
  return openslide::kind_of(first, file) != nullptr;
}

void open_by_openslide(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options) {
  std::array<std::byte, first_bytes> first;
  const openslide::Kind* kind = openslide::kind_of(std::span(first).first(file->read_some(0, first)), *file);
  const std::filesystem::path path = file->path();
  const std::string is_kind = kind == nullptr ? "" : std::string("is ") + kind->name + ", which OpenSlide reads: ";
  std::shared_ptr<const Library> library;
  std::string fault;
  if (options.openslide == "never") {
    fault = "input.openslide is \"never\"";
  } else {
    try {
      library = Library::load(options.openslide);
    } catch (const ConfigError& error) {
      fault = error.what();
    }
  }
  if (library == nullptr) {
    if (kind != nullptr) throw_slide_error(path, is_kind + fault);
    return open_tiff(slide, std::move(file), options);
  }
  if (const std::string fault_of_names = openslide::fault_of_named_files(path); !fault_of_names.empty()) {
    throw_slide_error(path, fault_of_names);
  }
  const char* vendor = library->functions().detect_vendor(path.c_str());
  const bool is_for_tiff = vendor == nullptr || std::string_view(vendor) == "generic-tiff";
  if (is_for_tiff && kind == nullptr) return open_tiff(slide, std::move(file), options);
  if (is_for_tiff && kind->is_tiff) {
    // As plain TIFF its tiles may lie in wrong places, and its pixel size is lost.
    throw_slide_error(path, is_kind + library->name() +
                                " doesn't recognise it; its tags or its XML are damaged, or that version is too old");
  }
  if (file->size() < 2) throw_slide_error(path, "has " + std::to_string(file->size()) + " bytes");
  const bool guesses_levels = vendor != nullptr && openslide::are_levels_directories(vendor);
  openslide::TiffLevels levels;
  if (guesses_levels) levels = openslide::check_tiff_levels(*file, options);
  try {
    auto container = std::make_unique<OpenSlideContainer>(library, *file);
    container->set_icc(levels.icc);
    container->set_guesses_levels(guesses_levels);
    std::unique_ptr<Handle> handle = container->handles().take_first(options.give_up);
    Opener(slide, *handle, options).read(*container);
    const std::size_t planes = focal_planes_of(kind, *file, *handle);
    container->handles().give_back(std::move(handle));
    if (planes > 1) {
      slide.info.warnings.push_back("has " + std::to_string(planes) + " focal planes, of which OpenSlide reads one");
    }
    std::ranges::move(levels.warnings, std::back_inserter(slide.info.warnings));
    slide.info.container = "OpenSlide";
    slide.info.library = library->name() + ", " + library->file();
    slide.info.file_size = size_of_files(path);
    slide.files.add(std::move(file));
    slide.container = std::move(container);
  } catch (const SlideError&) {
    throw;
  } catch (const Error& error) {
    throw_slide_error(path, is_kind + library->name() + ": " + error.what());
  }
}

}  // namespace slidestream
