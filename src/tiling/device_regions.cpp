#include <unistd.h>

#include <mutex>
#include <slidestream/error.hpp>
#include <utility>

#include "runtime/cuda/devices.hpp"
#include "tiling/device_memory.hpp"
#include "tiling/device_process.hpp"
#include "tiling/window_decoder.hpp"

namespace slidestream {

namespace {

/// Tiles that a region's decoder is ready for at a time: those of 2,500 x 2,500 pixels.
constexpr std::size_t region_tiles = 128;
/// Decoders of a device that are kept between regions, 80 MB each.
constexpr std::size_t most_decoders = 4;
/// Memory of regions no larger than this is used again.
constexpr std::size_t most_kept = std::size_t{64} << 20;

/// Decoders that regions of all slides share. They stay until the process ends, when nothing of CUDA can be destroyed
/// any more.
class Decoders {
 public:
  static Decoders& get() {
    static auto* const all = new Decoders;
    return *all;
  }

  std::unique_ptr<WindowDecoder> take(int device) {
    {
      const std::lock_guard lock(mutex_);
      for (auto it = free_.begin(); it != free_.end(); ++it) {
        if (it->first != device) continue;
        std::unique_ptr<WindowDecoder> found = std::move(it->second);
        free_.erase(it);
        return found;
      }
    }
    WindowDecoderLimits limits = WindowDecoderLimits::of_tiles(region_tiles);
    limits.waits_actively = true;
    return std::make_unique<WindowDecoder>(limits);
  }

  void give_back(int device, std::unique_ptr<WindowDecoder> decoder) {
    const std::lock_guard lock(mutex_);
    if (free_.size() < most_decoders) free_.emplace_back(device, std::move(decoder));
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<int, std::unique_ptr<WindowDecoder>>> free_;  // guarded by mutex_
};

}  // namespace

struct DeviceRegionReader::Impl {
  explicit Impl(int of) : device(of) {}

  std::shared_ptr<DeviceBatchMemory::Lease> take_memory(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    if (memory == nullptr || memory->bytes() != bytes) {
      memory = std::make_shared<DeviceBatchMemory>(device, bytes, bytes <= most_kept ? 2 : 0);
    }
    return memory->take();
  }

  /// Whether the device decodes a level. Found out once.
  bool takes(const Slide& slide, std::size_t level) {
    {
      const std::lock_guard lock(mutex);
      taken.resize(slide.info().levels.size());
      if (taken[level]) return *taken[level];
    }
    const bool found = WindowDecoder::takes(slide, level);
    const std::lock_guard lock(mutex);
    taken[level] = found;
    if (!found) add_note(WindowDecoder::note(slide, level, false));
    return found;
  }

  /// With the lock.
  void add_note(std::string note) {
    if (!std::exchange(noted, true)) notes.push_back(std::move(note));
  }

  const int device;
  std::mutex mutex;
  std::shared_ptr<DeviceBatchMemory> memory;  ///< for regions of the last one's size; this and what follows are guarded
  std::vector<std::optional<bool>> taken;     ///< of the levels of the slide, which is always the same
  bool noted = false;
  std::vector<std::string> notes;
};

DeviceRegionReader::DeviceRegionReader(int device) : impl_(std::make_unique<Impl>(device)) {}

DeviceRegionReader::~DeviceRegionReader() = default;

std::shared_ptr<DeviceLease> DeviceRegionReader::read(const Slide& slide, const Resolution& resolution,
                                                      std::int64_t first_column, std::int64_t first_row,
                                                      const Size& size, std::uint8_t fill, BadTilePolicy on_bad_tile) {
  Impl& impl = *impl_;
  require_own_process();
  const runtime::cuda::DeviceScope scope(impl.device);
  WindowTask task;
  task.slide = &slide;
  task.resolution = resolution;
  task.on_device = impl.takes(slide, resolution.level);
  task.fill = fill;
  task.on_bad_tile = on_bad_tile;
  std::shared_ptr<DeviceBatchMemory::Lease> pixels =
      impl.take_memory(static_cast<std::size_t>(size.width * size.height) * 3);
  const WindowTarget target = {{first_column, first_row, size.width, size.height}, pixels->data()};
  task.windows = {&target, 1};
  std::unique_ptr<WindowDecoder> decoder = Decoders::get().take(impl.device);
  pixels->wait_for_former_users(decoder->stream());
  const std::size_t by_cpu = decoder->run(task);
  Decoders::get().give_back(impl.device, std::move(decoder));
  if (by_cpu > 0) {
    const std::lock_guard lock(impl.mutex);
    impl.add_note(WindowDecoder::note(slide, resolution.level, true));
  }
  return pixels;
}

std::vector<std::string> DeviceRegionReader::take_notes() {
  const std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->notes, {});
}

}  // namespace slidestream
