#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <sys/types.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <span>

#include "bindings.hpp"
#include "device_array.hpp"
#include "runtime/machine.hpp"
#include "sink/srgb_profile.hpp"
#include "slide/decode_memory.hpp"
#include "tiling/batch_memory.hpp"
#include "tiling/device_tiles.hpp"
#include "tiling/region_reader.hpp"
#include "tiling/slide_pictures.hpp"
#include "tiling/window_plan.hpp"

namespace slidestream::python {

namespace {

/// Memory for decoding tiles, in MiB. \throws ConfigError
std::shared_ptr<DecodeMemory> decode_memory_of(int mebibytes) {
  if (mebibytes < 1) throw ConfigError("decode_mib is " + std::to_string(mebibytes) + "; expected at least 1");
  auto memory = std::make_unique<DecodeMemory>(static_cast<std::uint64_t>(mebibytes) << 20, "decode_mib", 1);
  // The end of what threads wait for waits for them, and a forked child hasn't these threads.
  return {memory.release(), [process = ::getpid()](DecodeMemory* made) {
            if (::getpid() == process) delete made;
          }};
}

OpenOptions with(double mpp, int channel, bool to_srgb, std::shared_ptr<DecodeMemory> memory) {
  OpenOptions options;
  options.decode_memory = std::move(memory);
  options.mpp = mpp;
  options.channel = channel;
  options.channel_name = "channel";
  options.to_srgb = to_srgb;
  return options;
}

struct OpenSlide {
  /// \param sharing  has the memory for decoding already; null: it is `decode_mib`
  OpenSlide(const std::filesystem::path& path, double mpp, int channel, bool to_srgb, int decode_mib,
            const OpenSlide* sharing)
      : decode_memory(sharing != nullptr ? sharing->decode_memory : decode_memory_of(decode_mib)),
        slide(Slide::open(path, with(mpp, channel, to_srgb, decode_memory))) {}

  const SlideInfo& info() const { return slide->info(); }

  /// Memory for a region. Programs tend to read many of one size: what they let go is used again.
  std::shared_ptr<BatchMemory::Lease> take(std::size_t bytes) {
    runtime::require_memory(bytes, "a region");
    // A child that was forked may have the lock as a thread of its parent had it.
    if (process_ != ::getpid()) return std::make_shared<BatchMemory>(bytes, 0)->take();
    const std::lock_guard lock(mutex_);
    if (memory_ == nullptr || memory_->bytes() != bytes) {
      memory_ = std::make_shared<BatchMemory>(bytes, bytes <= most_kept ? 2 : 0);
    }
    return memory_->take();
  }

  /// What reads regions to a device. \throws CudaError
  DeviceRegionReader& on_device(int device) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<DeviceRegionReader>& found = on_devices_[device];
    if (found == nullptr) found = std::make_unique<DeviceRegionReader>(device);
    return *found;
  }

  std::shared_ptr<DecodeMemory> decode_memory;
  std::shared_ptr<const Slide> slide;
  RegionReader reader;

 private:
  static constexpr std::size_t most_kept = std::size_t{64} << 20;

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::shared_ptr<BatchMemory> memory_;  ///< for regions of the last one's size; guarded by mutex_
  std::map<int, std::unique_ptr<DeviceRegionReader>> on_devices_;  ///< guarded by mutex_
};

/// Where a rectangle begins.
struct Region {
  Resolution resolution;
  std::int64_t x = 0;  ///< pixels of the resolution
  std::int64_t y = 0;
};

/// \throws ConfigError where an argument means nothing, SlideError where there are no such pixels.
Region find_region(const SlideInfo& info, std::int64_t x, std::int64_t y, std::int64_t level_index, std::int64_t width,
                   std::int64_t height, std::optional<double> mpp, int fill) {
  if (level_index < 0 || level_index >= std::ssize(info.levels)) {
    throw ConfigError("level is " + std::to_string(level_index) + "; the slide has 0 to " +
                      std::to_string(info.levels.size() - 1));
  }
  constexpr std::int64_t most = std::int64_t{1} << 36;
  if (width < 1 || height < 1 || width > most || height > most / width) {
    throw ConfigError("size is (" + std::to_string(width) + ", " + std::to_string(height) +
                      "); expected 1 x 1 to 2^36 pixels");
  }
  constexpr std::int64_t farthest = std::int64_t{1} << 40;
  // The smallest number has no absolute value.
  if (x < -farthest || x > farthest || y < -farthest || y > farthest) {
    throw ConfigError("location is (" + std::to_string(x) + ", " + std::to_string(y) + "); expected at most 2^40");
  }
  if (fill < 0 || fill > 255) throw ConfigError("fill is " + std::to_string(fill) + "; expected 0 to 255");
  if (mpp && !(*mpp > 0.0)) throw ConfigError("mpp is " + std::to_string(*mpp) + "; expected more than 0");
  const Resolution resolution = choose_resolution(info, level_index, mpp, "open it with Slide(path, mpp=...)");
  return {resolution, on_grid(x, info.downsample_x(resolution.level), resolution),
          on_grid(y, info.downsample_y(resolution.level), resolution)};
}

Array<std::uint8_t> read_region(OpenSlide& open, std::int64_t x, std::int64_t y, std::int64_t level_index,
                                std::int64_t width, std::int64_t height, std::optional<double> mpp, int fill,
                                bool white) {
  const Region region = find_region(open.info(), x, y, level_index, width, height, mpp, fill);
  std::shared_ptr<BatchMemory::Lease> memory;
  {
    Unlocked unlocked;
    memory = open.take(static_cast<std::size_t>(width * height * 3));
    const HostPixels out = {memory->data(), width * 3, width, height, rgb_format};
    const auto beyond = static_cast<std::uint8_t>(fill);
    open.reader.read(*open.slide, region.resolution, region.x, region.y, out, beyond, bad_tile_policy(white),
                     [&] { unlocked.check_signals(); });
  }
  std::uint8_t* const data = memory->data();
  return array_of(data, {static_cast<std::size_t>(height), static_cast<std::size_t>(width), 3}, std::move(memory));
}

Array<std::uint8_t> associated_image(const OpenSlide& open, std::size_t index) {
  AssociatedImage image;
  {
    const Unlocked unlocked;
    image = open.slide->read_associated(index);
  }
  return array_of(std::move(image.pixels),
                  {static_cast<std::size_t>(image.size.height), static_cast<std::size_t>(image.size.width), 3});
}

/// 1 where there is tissue, the pixels of level 0 along a pixel of the mask (across, down), and lines for the log.
std::tuple<Array<std::uint8_t>, double, double, std::vector<std::string>> tissue_mask(const OpenSlide& open,
                                                                                      bool white) {
  FoundTissue found;
  {
    const Unlocked unlocked;
    found = tissue_of(*open.slide, bad_tile_policy(white), "open it with Slide(path, mpp=...)");
  }
  const Mask& mask = *found.mask;
  std::vector<std::uint8_t> pixels = mask.pixels;
  return {array_of(std::move(pixels),
                   {static_cast<std::size_t>(mask.size.height), static_cast<std::size_t>(mask.size.width)}),
          mask.scale.x, mask.scale.y, std::move(found.doubts)};
}

Array<std::uint8_t> thumbnail_of(OpenSlide& open, std::int64_t width, std::int64_t height, bool white) {
  Picture picture;
  {
    Unlocked unlocked;
    picture =
        thumbnail(open.reader, *open.slide, {width, height}, bad_tile_policy(white), [&] { unlocked.check_signals(); });
  }
  return array_of(std::move(picture.pixels),
                  {static_cast<std::size_t>(picture.size.height), static_cast<std::size_t>(picture.size.width), 3});
}

/// The same on a device, and lines for the log.
std::pair<DeviceArray, std::vector<std::string>> read_region_on(OpenSlide& open, int device, std::int64_t x,
                                                                std::int64_t y, std::int64_t level_index,
                                                                std::int64_t width, std::int64_t height,
                                                                std::optional<double> mpp, int fill, bool white) {
  const Region region = find_region(open.info(), x, y, level_index, width, height, mpp, fill);
  const Unlocked unlocked;
  DeviceRegionReader& reader = open.on_device(device);
  std::shared_ptr<DeviceLease> memory = reader.read(*open.slide, region.resolution, region.x, region.y, {width, height},
                                                    static_cast<std::uint8_t>(fill), bad_tile_policy(white));
  return {DeviceArray(std::move(memory), {height, width, 3}), reader.take_notes()};
}

}  // namespace

void bind_slide(nb::module_& module) {
  nb::class_<Level>(module, "Level", "One resolution of a slide.")
      .def_ro("width", &Level::width, "Pixels.")
      .def_ro("height", &Level::height, "Pixels.")
      .def_ro("tile_width", &Level::tile_width, "Pixels.")
      .def_ro("tile_height", &Level::tile_height, "Pixels.")
      .def_ro("columns", &Level::columns, "Tiles across.")
      .def_ro("rows", &Level::rows, "Tiles down.")
      .def_ro("downsample", &Level::downsample, "Pixels of level 0 for one of this level, along the width.")
      .def_prop_ro(
          "codec", [](const Level& level) { return name(level.codec); }, "How tiles are compressed.")
      .def_prop_ro(
          "colour", [](const Level& level) { return name(level.colour); }, "What is stored of a pixel.")
      .def_prop_ro(
          "size", [](const Level& level) { return std::pair(level.width, level.height); },
          "Width and height in pixels.")
      .def("__repr__", [](const Level& level) {
        return "Level(" + std::to_string(level.width) + " x " + std::to_string(level.height) + ", tiles of " +
               std::to_string(level.tile_width) + " x " + std::to_string(level.tile_height) + ", " + name(level.codec) +
               ")";
      });
  nb::class_<OpenSlide>(module, "OpenSlide")
      .def(nb::init<const std::filesystem::path&, double, int, bool, int, const OpenSlide*>(), nb::arg("path"),
           nb::arg("mpp"), nb::arg("channel"), nb::arg("to_srgb"), nb::arg("decode_mib"), nb::arg("sharing").none(),
           nb::call_guard<Unlocked>())
      .def_prop_ro("path", [](const OpenSlide& open) { return open.info().path; })
      .def_prop_ro("format", [](const OpenSlide& open) { return open.info().format; })
      .def_prop_ro("is_srgb", [](const OpenSlide& open) { return open.info().is_srgb; })
      .def_prop_ro("labels", [](const OpenSlide& open) { return open.info().labels; })
      .def_prop_ro("warnings",
                   [](const OpenSlide& open) {
                     std::vector<nb::str> lines;
                     for (const std::string& line : open.info().warnings) lines.push_back(text_of(line));
                     return lines;
                   })
      .def_prop_ro("file_bytes", [](const OpenSlide& open) { return open.info().file_size; })
      .def_prop_ro("levels", [](const OpenSlide& open) { return open.info().levels; })
      .def_prop_ro("mpp", [](const OpenSlide& open) { return open.info().mpp; })
      .def_prop_ro("mpp_y",
                   [](const OpenSlide& open) { return open.info().mpp_y ? open.info().mpp_y : open.info().mpp; })
      .def_prop_ro("magnification", [](const OpenSlide& open) { return open.info().magnification; })
      .def_prop_ro("channels",
                   [](const OpenSlide& open) {
                     std::vector<nb::str> names;
                     for (const std::string& name : open.info().channels) names.push_back(text_of(name));
                     return names;
                   })
      .def_prop_ro("properties",
                   [](const OpenSlide& open) {
                     nb::typed<nb::dict, nb::str, nb::str> properties;
                     for (const auto& [key, value] : open.info().properties) properties[text_of(key)] = text_of(value);
                     return properties;
                   })
      .def_prop_ro("associated",
                   [](const OpenSlide& open) {
                     std::vector<nb::str> names;
                     for (const std::string& name : open.info().associated) names.push_back(text_of(name));
                     return names;
                   })
      .def("icc_profile",
           [](const OpenSlide& open) {
             if (open.info().is_srgb) {
               const std::span<const std::byte> srgb = srgb_profile();
               return nb::bytes(reinterpret_cast<const char*>(srgb.data()), srgb.size());
             }
             const IccProfile profile = open.slide->icc_profile(0);
             return nb::bytes(reinterpret_cast<const char*>(profile.bytes.data()), profile.bytes.size());
           })
      .def("associated_image", &associated_image)
      .def("tissue_mask", &tissue_mask)
      .def("thumbnail", &thumbnail_of)
      .def("read_region", &read_region)
      .def("read_region_on", &read_region_on);
}

}  // namespace slidestream::python
