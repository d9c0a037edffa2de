#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <slidestream/error.hpp>
#include <thread>
#include <utility>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/machine.hpp"
#include "slide/file.hpp"
#include "tiling/device_memory.hpp"
#include "tiling/device_process.hpp"
#include "tiling/window_decoder.hpp"

namespace slidestream {

namespace {

constexpr std::size_t samples = 3;
/// Tiles of a group, and threads that each have one under way: more don't make it faster.
constexpr std::size_t most_group_tiles = 4096;
constexpr std::size_t least_group_tiles = 64;
constexpr int most_threads = 12;
/// The same where the CPU decodes: a thread is long busy with them.
constexpr std::size_t cpu_group_tiles = 32;
/// Device memory that is usual, of which a quarter may be had.
constexpr std::size_t usual_memory = std::size_t{16} << 30;

using Lease = std::shared_ptr<DeviceBatchMemory::Lease>;

/// A batch that is being made.
struct OpenBatch {
  Lease pixels;
  std::vector<std::int64_t> coords;  ///< of the windows that were begun
  std::vector<std::int32_t> slides;  ///< the same
  std::int64_t windows_made = 0;
};

/// A slide whose windows are known.
struct PlannedSlide {
  std::shared_ptr<const Slide> slide;
  std::int32_t place = 0;  ///< among the slides
  WindowPlan plan;
  std::vector<std::int64_t> rows;  ///< first pixel row of each window
  bool on_device = false;
  std::int64_t group = 1;      ///< windows
  std::exception_ptr failure;  ///< why it isn't known, else null

  const Level& level() const { return slide->info().levels[plan.resolution.level]; }
};

/// Windows that stand one behind the other, of one slide.
struct Group {
  std::shared_ptr<PlannedSlide> slide;
  std::vector<WindowTarget> windows;
  struct Part {
    OpenBatch* batch = nullptr;
    std::int64_t windows = 0;
  };
  std::vector<Part> batches;
};

/// How device memory is divided.
struct Division {
  int threads = 1;
  std::size_t tiles = least_group_tiles;  ///< of a group
  std::size_t batch_bytes = 0;            ///< for batches that are being made
};

Division divide(std::size_t memory, int threads, bool resamples) {
  Division division;
  division.threads = threads;
  const auto bytes_for = [&](std::size_t tiles) {
    WindowDecoderLimits limits = WindowDecoderLimits::of_tiles(tiles);
    limits.resamples = resamples;
    // As much again for the pixels of the windows, and those of batches that are whole and wait.
    return static_cast<std::size_t>(division.threads) *
           (WindowDecoder::device_bytes(limits) + 2 * tiles * 256 * 256 * samples);
  };
  // Few threads with large groups are faster than many with small ones.
  while (division.threads > 2 && bytes_for((division.threads > 8 ? 16 : 4) * least_group_tiles) > memory) {
    --division.threads;
  }
  while (division.tiles < most_group_tiles && bytes_for(2 * division.tiles) <= memory) division.tiles *= 2;
  division.batch_bytes = static_cast<std::size_t>(division.threads) * 2 * division.tiles * 256 * 256 * samples;
  return division;
}

}  // namespace

struct DeviceTileStream::Impl {
  Impl(TileStreamOptions given, int on)
      : options(std::move(given)),
        device(on),
        memory(std::make_shared<DeviceBatchMemory>(on, window_bytes() * static_cast<std::size_t>(options.batch), 0)) {}

  std::size_t window_bytes() const {
    return static_cast<std::size_t>(options.windows.size.width * options.windows.size.height) * samples;
  }
  void start();
  void work();
  std::shared_ptr<PlannedSlide> plan(std::int32_t place) const;
  void run(WindowDecoder& decoder, Group& group);

  // With the lock.
  bool take_group(Group& group, std::unique_lock<std::mutex>& lock);
  void plan_ahead(std::unique_lock<std::mutex>& lock);
  bool may_begin(std::int64_t windows) const;
  void begin(Group& group, std::int64_t windows);
  void note(const PlannedSlide& slide);
  bool is_due() const;

  const TileStreamOptions options;
  const int device;
  const pid_t process = ::getpid();
  const std::shared_ptr<DeviceBatchMemory> memory;
  Division division;
  std::vector<std::thread> threads;

  mutable std::mutex mutex;  ///< guards all that follows
  std::condition_variable work_changed;
  std::condition_variable batches_changed;
  bool stopping = false;
  bool exhausted = false;  ///< all windows were begun
  int running = 0;         ///< groups
  std::exception_ptr failure;
  std::vector<std::string> notes;
  std::int32_t noted = -1;  ///< the slide of the last one

  std::deque<std::shared_ptr<PlannedSlide>> planned;  ///< ahead of the current one
  std::int32_t slides_planned = 0;
  bool planning = false;
  std::shared_ptr<PlannedSlide> current;
  std::int64_t next_window = 0;   ///< of the current slide
  std::int64_t first_window = 0;  ///< of the current slide, its number in the stream

  std::deque<std::unique_ptr<OpenBatch>> open;  ///< from number `delivered` on
  std::int64_t delivered = 0;                   ///< batches
  std::int64_t most_open = 0;
};

void DeviceTileStream::Impl::start() {
  const runtime::cuda::DeviceScope scope(device);
  std::size_t allowed = static_cast<std::size_t>(options.memory_mib) << 20;
  if (allowed == 0) {
    std::size_t free = 0;
    std::size_t total = 0;
    SLIDESTREAM_CUDA(cudaMemGetInfo(&free, &total));
    allowed = std::min(usual_memory, free / 4);
  }
  division =
      divide(allowed, options.threads > 0 ? options.threads : std::min(runtime::available_processors(), most_threads),
             options.windows.mpp.has_value());
  const auto batches = static_cast<std::int64_t>(division.batch_bytes / memory->bytes());
  most_open = std::max<std::int64_t>(batches, 1) + options.prefetch;
  // Besides those, one that the caller has, and one that somebody else may still be at work with.
  memory->keep(static_cast<std::size_t>(most_open) + 2);
  for (int i = 0; i < division.threads; ++i) threads.emplace_back([this] { work(); });
}

std::shared_ptr<PlannedSlide> DeviceTileStream::Impl::plan(std::int32_t place) const {
  auto made = std::make_shared<PlannedSlide>();
  made->place = place;
  try {
    made->slide = Slide::open(options.slides[static_cast<std::size_t>(place)], options.open);
    made->plan = plan_windows(*made->slide, options.windows);
    for (const WindowRow& row : made->plan.rows) made->rows.insert(made->rows.end(), row.count, row.y);
    made->on_device = WindowDecoder::takes(*made->slide, made->plan.resolution.level);
    const Level& level = made->level();
    const Size& size = options.windows.size;
    const Size& step = options.windows.step;
    const auto tile_pixels = static_cast<double>(level.tile_width * level.tile_height);
    // Of windows that lie close together there are more to a tile.
    const double pixel = made->plan.resolution.reduction();
    const double tiles_a_window = static_cast<double>(std::min(size.width, step.width)) * pixel *
                                  static_cast<double>(std::min(size.height, step.height)) * pixel / tile_pixels;
    const auto tiles = static_cast<double>(made->on_device ? division.tiles : cpu_group_tiles);
    // Small slides are shared out, too.
    const auto windows = std::ssize(made->plan.columns);
    const std::int64_t share = std::max<std::int64_t>(256, windows / (2 * division.threads));
    made->group =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(tiles / std::max(tiles_a_window, 1.0 / 64)), 1, share);
  } catch (...) {
    made->failure = std::current_exception();
  }
  return made;
}

void DeviceTileStream::Impl::plan_ahead(std::unique_lock<std::mutex>& lock) {
  planning = true;
  const std::int32_t place = slides_planned++;
  lock.unlock();
  std::shared_ptr<PlannedSlide> slide = plan(place);
  lock.lock();
  planning = false;
  planned.push_back(std::move(slide));
  work_changed.notify_all();
}

bool DeviceTileStream::Impl::may_begin(std::int64_t windows) const {
  const std::int64_t first = first_window + next_window;
  // Where the batch that is due waits for these windows, there is no choice.
  return (first + windows - 1) / options.batch < delivered + most_open || first / options.batch <= delivered;
}

void DeviceTileStream::Impl::begin(Group& group, std::int64_t windows) {
  const Level& level = current->level();
  const Level& finest = current->slide->info().levels.front();
  const double pixel = current->plan.resolution.reduction();
  group.slide = current;
  group.windows.clear();
  group.batches.clear();
  for (const std::int64_t end = next_window + windows; next_window < end; ++next_window) {
    const std::int64_t number = first_window + next_window;
    if (number / options.batch - delivered == std::ssize(open)) {
      auto made = std::make_unique<OpenBatch>();
      made->pixels = memory->take();
      open.push_back(std::move(made));
    }
    OpenBatch& batch = *open[static_cast<std::size_t>(number / options.batch - delivered)];
    const Rect window = {current->plan.columns[static_cast<std::size_t>(next_window)],
                         current->rows[static_cast<std::size_t>(next_window)], options.windows.size.width,
                         options.windows.size.height};
    group.windows.push_back(
        {window, batch.pixels->data() + static_cast<std::size_t>(number % options.batch) * window_bytes()});
    batch.coords.push_back(to_finest(window.x, level.width, finest.width, pixel));
    batch.coords.push_back(to_finest(window.y, level.height, finest.height, pixel));
    batch.slides.push_back(current->place);
    if (group.batches.empty() || group.batches.back().batch != &batch) group.batches.push_back({&batch, 0});
    ++group.batches.back().windows;
  }
}

/// Waits for windows that may be made; false: there is nothing more to do.
bool DeviceTileStream::Impl::take_group(Group& group, std::unique_lock<std::mutex>& lock) {
  while (!stopping && failure == nullptr) {
    const bool all_planned = slides_planned == std::ssize(options.slides);
    if (planned.empty() && !planning && !all_planned) {
      plan_ahead(lock);
    } else if (current == nullptr && !planned.empty()) {
      current = std::move(planned.front());
      planned.pop_front();
      next_window = 0;
      if (current->failure != nullptr) {
        failure = current->failure;
      } else if (!current->on_device) {
        note(*current);
      }
    } else if (current == nullptr && all_planned && !planning) {
      exhausted = true;
      break;
    } else if (current == nullptr) {
      work_changed.wait(lock);
    } else if (const auto left = std::ssize(current->plan.columns) - next_window; left == 0) {
      first_window += next_window;
      current = nullptr;
    } else if (const auto windows = std::min<std::int64_t>(current->group, left); may_begin(windows)) {
      begin(group, windows);
      return true;
    } else {
      work_changed.wait(lock);
    }
  }
  work_changed.notify_all();
  batches_changed.notify_all();
  return false;
}

void DeviceTileStream::Impl::note(const PlannedSlide& slide) {
  if (noted >= slide.place) return;
  noted = slide.place;
  notes.push_back(WindowDecoder::note(*slide.slide, slide.plan.resolution.level, slide.on_device));
}

void DeviceTileStream::Impl::run(WindowDecoder& decoder, Group& group) {
  for (const Group::Part& part : group.batches) part.batch->pixels->wait_for_former_users(decoder.stream());
  WindowTask task;
  task.slide = group.slide->slide.get();
  task.resolution = group.slide->plan.resolution;
  task.on_device = group.slide->on_device;
  task.windows = group.windows;
  task.layout = options.layout;
  task.fill = options.fill;
  task.on_bad_tile = options.windows.on_bad_tile;
  const std::size_t by_cpu = decoder.run(task);
  const std::lock_guard lock(mutex);
  if (by_cpu > 0) note(*group.slide);
  for (const Group::Part& part : group.batches) part.batch->windows_made += part.windows;
}

bool DeviceTileStream::Impl::is_due() const {
  if (open.empty()) return false;
  const std::int64_t made = open.front()->windows_made;
  return made == options.batch || (exhausted && made == std::ssize(open.front()->slides));
}

void DeviceTileStream::Impl::work() {
  const auto fail = [this] {
    if (failure == nullptr) failure = std::current_exception();
    work_changed.notify_all();
    batches_changed.notify_all();
  };
  std::unique_lock lock(mutex, std::defer_lock);
  try {
    const runtime::cuda::DeviceScope scope(device);
    WindowDecoder decoder(WindowDecoderLimits::of_tiles(division.tiles));
    Group group;
    lock.lock();
    while (take_group(group, lock)) {
      ++running;
      lock.unlock();
      std::exception_ptr caught;
      try {
        run(decoder, group);
      } catch (...) {
        caught = std::current_exception();
      }
      lock.lock();
      --running;
      if (caught != nullptr && failure == nullptr) failure = caught;
      if (failure != nullptr || is_due()) batches_changed.notify_all();
    }
    lock.unlock();
  } catch (...) {
    // Memory can't be had: the other threads are not to go on from where this one stopped.
    if (!lock.owns_lock()) lock.lock();
    fail();
  }
}

DeviceTileStream::DeviceTileStream(TileStreamOptions options, int device) {
  TileStreamOptions checked = options;
  checked.memory_mib = std::max(checked.memory_mib, 1);
  check_options(checked);
  require_own_process();
  impl_ = std::make_unique<Impl>(std::move(options), device);
  try {
    impl_->start();
  } catch (...) {
    close();
    throw;
  }
}

DeviceTileStream::~DeviceTileStream() {
  close();
  // In a child its threads can't be joined, and what they were doing can't be known.
  if (impl_->process != ::getpid()) static_cast<void>(impl_.release());
}

void DeviceTileStream::close() noexcept {
  // A child that was forked has the object, but not its threads, and the lock as some thread had it.
  if (impl_->process != ::getpid()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->work_changed.notify_all();
  impl_->batches_changed.notify_all();
  static std::mutex joining;
  {
    const std::lock_guard lock(joining);
    for (std::thread& thread : impl_->threads) {
      if (thread.joinable()) thread.join();
    }
  }
  impl_->memory->keep(0);
}

TileStream::State DeviceTileStream::next(DeviceBatch& batch, std::chrono::milliseconds patience) {
  Impl& impl = *impl_;
  if (impl.process != ::getpid()) {
    throw Error("tiles were begun by another process: begin them in the one that uses them");
  }
  std::unique_ptr<OpenBatch> made;
  {
    std::unique_lock lock(impl.mutex);
    const auto is_over = [&] {
      return impl.stopping || (impl.exhausted && impl.open.empty()) || (impl.failure != nullptr && impl.running == 0);
    };
    if (!impl.batches_changed.wait_for(lock, patience, [&] { return impl.is_due() || is_over(); })) {
      return TileStream::State::waiting;
    }
    if (impl.stopping) return TileStream::State::end;
    if (!impl.is_due()) {
      if (impl.failure != nullptr) std::rethrow_exception(impl.failure);
      return TileStream::State::end;
    }
    made = std::move(impl.open.front());
    impl.open.pop_front();
    ++impl.delivered;
  }
  impl.work_changed.notify_all();
  batch.coords = std::move(made->coords);
  batch.slides = std::move(made->slides);
  batch.count = std::ssize(batch.slides);
  const std::size_t used = static_cast<std::size_t>(batch.count) * impl.window_bytes();
  if (used < impl.memory->bytes()) {
    const runtime::cuda::DeviceScope scope(impl.device);
    const runtime::cuda::Stream stream;
    SLIDESTREAM_CUDA(cudaMemsetAsync(made->pixels->data() + used, 0, impl.memory->bytes() - used, stream.get()));
    SLIDESTREAM_CUDA(cudaStreamSynchronize(stream.get()));
  }
  batch.pixels = std::move(made->pixels);
  return TileStream::State::batch;
}

std::vector<std::string> DeviceTileStream::take_notes() {
  const std::lock_guard lock(impl_->mutex);
  return std::exchange(impl_->notes, {});
}

}  // namespace slidestream
