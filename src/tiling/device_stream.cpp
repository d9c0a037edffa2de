#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <thread>
#include <utility>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/machine.hpp"
#include "slide/file.hpp"
#include "tiling/device_memory.hpp"
#include "tiling/device_process.hpp"
#include "tiling/stream_state.hpp"
#include "tiling/white_tiles.hpp"
#include "tiling/window_decoder.hpp"
#include "tiling/window_order.hpp"

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
  std::vector<std::int64_t> coords;  ///< of each window that was begun, by its place
  std::vector<std::int32_t> slides;  ///< the same
  std::int64_t count = 0;            ///< windows that were begun
  std::int64_t windows_made = 0;
};

/// Windows that are planned together, and how they are made.
struct PlannedWindows {
  WindowSegment segment;
  std::vector<std::int64_t> rows;  ///< first pixel row of each window
  bool on_device = false;
  std::int64_t group = 1;  ///< windows

  const Slide& slide() const { return *segment.slide; }
  const WindowPlan& plan() const { return segment.plan; }
  const Level& level() const { return segment.level(); }
};

/// Windows that stand one behind the other in a plan.
struct Group {
  std::shared_ptr<PlannedWindows> planned;
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

struct DeviceTileStream::Impl : StreamState<OpenBatch, PlannedWindows> {
  Impl(TileStreamOptions given, int on)
      : StreamState(given.batch),
        options(std::move(given)),
        device(on),
        memory(std::make_shared<DeviceBatchMemory>(on, window_bytes() * static_cast<std::size_t>(options.batch), 0)) {}

  /// Windows without a grid that are planned together: several threads share them.
  std::int64_t chunk_windows() const {
    constexpr std::int64_t most_batches = 16;
    return std::clamp<std::int64_t>(most_open / 2, 1, most_batches) * options.batch;
  }

  std::size_t window_bytes() const {
    return static_cast<std::size_t>(options.windows.size.width * options.windows.size.height) * samples;
  }
  void start();
  void work();
  std::shared_ptr<PlannedWindows> plan(WindowSegment segment) const;
  void run(WindowDecoder& decoder, Group& group);

  // With the lock.
  bool take_group(Group& group, std::unique_lock<std::mutex>& lock);
  bool may_begin(std::int64_t windows) const;
  void begin(Group& group, std::int64_t windows);
  void note(const PlannedWindows& windows);

  const TileStreamOptions options;
  const int device;
  const std::shared_ptr<DeviceBatchMemory> memory;
  Division division;
  std::optional<WindowOrder> order;  ///< used by the thread that set `planning`
  WhiteTiles white;

  // The lock guards these, too.
  std::vector<std::string> notes;
  std::vector<bool> noted;       ///< of each slide
  std::int64_t next_window = 0;  ///< of the current plan
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
  if (!options.corners.empty() || options.shuffle) {
    // What a chunk takes, and one that is being delivered.
    most_open = std::max<std::int64_t>(most_open, chunk_windows() / options.batch + 2);
  }
  noted.resize(options.slides.size());
  order.emplace(options, chunk_windows());
  for (int i = 0; i < division.threads; ++i) threads.emplace_back([this] { work(); });
}

std::shared_ptr<PlannedWindows> DeviceTileStream::Impl::plan(WindowSegment segment) const {
  auto made = std::make_shared<PlannedWindows>();
  made->segment = std::move(segment);
  const WindowPlan& plan = made->plan();
  for (const WindowRow& row : plan.rows) made->rows.insert(made->rows.end(), row.count, row.y);
  made->on_device = WindowDecoder::takes(made->slide(), plan.resolution.level);
  const Level& level = made->level();
  const Size& size = options.windows.size;
  const Size& step = options.windows.step;
  const double pixel = plan.resolution.reduction();
  const auto tiles_along = [&](std::int64_t window, std::int64_t next, std::int64_t tile) {
    // Of windows that lie close together there are more to a tile. Those of a list lie anywhere.
    return made->segment.is_scattered ? static_cast<double>(window) * pixel / static_cast<double>(tile) + 1.0
                                      : static_cast<double>(std::min(window, next)) * pixel / static_cast<double>(tile);
  };
  const double tiles_per_window =
      tiles_along(size.width, step.width, level.tile_width) * tiles_along(size.height, step.height, level.tile_height);
  const auto tiles = static_cast<double>(made->on_device ? division.tiles : cpu_group_tiles);
  // Small slides are shared out, too.
  const auto windows = std::ssize(plan.columns);
  const std::int64_t share = std::max<std::int64_t>(256, windows / (2 * division.threads));
  made->group =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(tiles / std::max(tiles_per_window, 1.0 / 64)), 1, share);
  return made;
}

bool DeviceTileStream::Impl::may_begin(std::int64_t windows) const {
  const WindowSegment& segment = current->segment;
  const std::int64_t first = segment.is_scattered ? segment.first : segment.first + next_window;
  const std::int64_t last = segment.is_scattered ? segment.last - 1 : first + windows - 1;
  // Where the batch that is due waits for these windows, there is no choice.
  return last / options.batch < delivered + most_open || first / options.batch <= delivered;
}

void DeviceTileStream::Impl::begin(Group& group, std::int64_t windows) {
  const WindowSegment& segment = current->segment;
  group.planned = current;
  group.windows.clear();
  group.batches.clear();
  for (const std::int64_t end = next_window + windows; next_window < end; ++next_window) {
    const auto window = static_cast<std::size_t>(next_window);
    const std::int64_t number = segment.number(window);
    while (number / options.batch - delivered >= std::ssize(open)) {
      auto made = std::make_unique<OpenBatch>();
      made->pixels = memory->take();
      made->coords.resize(2 * static_cast<std::size_t>(options.batch));
      made->slides.resize(static_cast<std::size_t>(options.batch));
      open.push_back(std::move(made));
    }
    OpenBatch& batch = *open[static_cast<std::size_t>(number / options.batch - delivered)];
    const auto place = static_cast<std::size_t>(number % options.batch);
    group.windows.push_back(
        {{segment.plan.columns[window], current->rows[window], options.windows.size.width, options.windows.size.height},
         batch.pixels->data() + place * window_bytes()});
    batch.coords[2 * place] = segment.corners[window].x;
    batch.coords[2 * place + 1] = segment.corners[window].y;
    batch.slides[place] = segment.place;
    ++batch.count;
    if (group.batches.empty() || group.batches.back().batch != &batch) group.batches.push_back({&batch, 0});
    ++group.batches.back().windows;
  }
}

/// Waits for windows that may be made; false: there is nothing more to do.
bool DeviceTileStream::Impl::take_group(Group& group, std::unique_lock<std::mutex>& lock) {
  while (!stopping && failure == nullptr) {
    if (planned == nullptr && !planning && !all_planned) {
      plan_ahead(lock, [this]() -> std::shared_ptr<PlannedWindows> {
        std::optional<WindowSegment> segment = order->next();
        return segment ? plan(std::move(*segment)) : nullptr;
      });
    } else if (current == nullptr && planning_failure != nullptr) {
      failure = planning_failure;
    } else if (current == nullptr && planned != nullptr) {
      current = std::move(planned);
      planned = nullptr;
      next_window = 0;
      if (!current->on_device) note(*current);
    } else if (current == nullptr && all_planned) {
      exhausted = true;
      break;
    } else if (current == nullptr) {
      work_changed.wait(lock);
    } else if (const auto left = std::ssize(current->plan().columns) - next_window; left == 0) {
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

void DeviceTileStream::Impl::note(const PlannedWindows& windows) {
  const auto place = static_cast<std::size_t>(windows.segment.place);
  if (noted[place]) return;
  noted[place] = true;
  notes.push_back(WindowDecoder::note(windows.slide(), windows.plan().resolution.level, windows.on_device));
}

void DeviceTileStream::Impl::run(WindowDecoder& decoder, Group& group) {
  for (const Group::Part& part : group.batches) part.batch->pixels->wait_for_former_users(decoder.stream());
  WindowTask task;
  task.slide = &group.planned->slide();
  task.resolution = group.planned->plan().resolution;
  task.on_device = group.planned->on_device;
  task.windows = group.windows;
  task.layout = options.layout;
  task.fill = options.fill;
  task.on_bad_tile = options.windows.on_bad_tile;
  task.white = &white;
  task.place = group.planned->segment.place;
  const std::size_t by_cpu = decoder.run(task);
  const std::lock_guard lock(mutex);
  if (by_cpu > 0) note(*group.planned);
  for (const Group::Part& part : group.batches) part.batch->windows_made += part.windows;
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
      run_unlocked(lock, [&] { run(decoder, group); });
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
  if (impl_->is_forked()) static_cast<void>(impl_.release());
}

void DeviceTileStream::close() noexcept {
  if (impl_->is_forked()) return;
  impl_->stop();
  impl_->memory->keep(0);
}

TileStream::State DeviceTileStream::next(DeviceBatch& batch, std::chrono::milliseconds patience) {
  Impl& impl = *impl_;
  TileStream::State state = TileStream::State::end;
  const std::unique_ptr<OpenBatch> made = impl.take_due(batch, patience, state);
  if (made == nullptr) {
    const auto slides = static_cast<std::int32_t>(impl.options.slides.size());
    if (state == TileStream::State::end && !impl.was_left()) impl.white.tell(slides, impl.options);
    return state;
  }
  if (!impl.options.shuffle) impl.white.tell(batch.slides.back(), impl.options);
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
