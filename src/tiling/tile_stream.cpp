#include "tiling/tile_stream.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>
#include <thread>
#include <utility>

#include "config/toml_text.hpp"
#include "runtime/machine.hpp"
#include "slide/tile_reader.hpp"
#include "tiling/tile_walk.hpp"
#include "tiling/window_order.hpp"
#include "tiling/window_pixels.hpp"

namespace slidestream {

namespace {

constexpr std::int64_t rgb_samples = 3;

/// A batch that is being made.
struct OpenBatch {
  explicit OpenBatch(std::int64_t windows, std::shared_ptr<BatchMemory::Lease> memory)
      : pixels(std::move(memory)),
        tiles_left(static_cast<std::size_t>(windows)),
        coords(static_cast<std::size_t>(2 * windows)),
        slides(static_cast<std::size_t>(windows)),
        sources(static_cast<std::size_t>(windows)) {}

  std::shared_ptr<BatchMemory::Lease> pixels;
  std::vector<std::atomic<std::int32_t>> tiles_left;  ///< of each window
  std::vector<std::int64_t> coords;                   ///< of each window that was begun, by its place
  std::vector<std::int32_t> slides;                   ///< the same
  std::int64_t count = 0;                             ///< windows that were begun
  /// Pixels of the level that windows of another resolution are made from, by their places.
  std::vector<std::shared_ptr<BatchMemory::Lease>> sources;
  std::atomic<std::int64_t> windows_made{0};

  std::uint8_t* window(std::size_t place, std::size_t bytes) const noexcept { return pixels->data() + place * bytes; }
};

/// Windows that are planned together, and what making them takes.
struct PlannedWindows {
  WindowSegment segment;
  WindowPlan source;                    ///< the same windows, in pixels of the level
  Size source_size;                     ///< of a window there
  std::shared_ptr<BatchMemory> memory;  ///< for these; null where windows have the level's own pixels
  std::size_t rows_at_a_time = 1;       ///< rows of windows for which a tile is decoded once
  std::int64_t batches_wanted = 0;      ///< at most, to hold the windows that a row of tiles touches

  const Slide& slide() const { return *segment.slide; }
  const WindowPlan& plan() const { return segment.plan; }
  const Level& level() const { return segment.level(); }
};

/// A window that gets a part of a tile.
struct Target {
  OpenBatch* batch = nullptr;
  std::size_t place = 0;  ///< of the window in its batch
};

/// A tile to decode, and where it goes.
struct Job {
  std::shared_ptr<const PlannedWindows> windows;
  TileWork work;
  std::vector<Target> targets;  ///< one for each part
};

/// \throws ConfigError where a value is outside its range.
void check(const char* what, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return;
  throw ConfigError(std::string(what) + " is " + std::to_string(value) + "; expected " + std::to_string(low) + " to " +
                    std::to_string(high));
}

}  // namespace

void check_options(const TileStreamOptions& options) {
  const WindowRequest& windows = options.windows;
  constexpr std::int64_t longest = 1 << 16;
  for (const std::int64_t side : {windows.size.width, windows.size.height}) check("size", side, 1, longest);
  for (const std::int64_t side : {windows.step.width, windows.step.height}) check("step", side, 1, longest);
  check("batch", options.batch, 1, 1 << 20);
  check("threads", options.threads, 0, 4096);
  check("prefetch", options.prefetch, 0, 1024);
  check("memory_mib", options.memory_mib, 1, 1 << 24);
  if (windows.shard < 0 || windows.shard >= windows.shards) {
    throw ConfigError("shard is (" + std::to_string(windows.shard) + ", " + std::to_string(windows.shards) +
                      "); expected (i, n) with 0 <= i < n");
  }
  if (windows.mpp && !(*windows.mpp > 0.0)) {
    throw ConfigError("mpp is " + to_toml_number(*windows.mpp) + "; expected more than 0");
  }
  if (!options.corners.empty() && options.corners.size() != options.slides.size()) {
    throw ConfigError("coords holds positions for " + std::to_string(options.corners.size()) + " slides; expected " +
                      std::to_string(options.slides.size()) + ", one list per slide");
  }
  if (!options.corners.empty() && windows.tissue) {
    throw ConfigError("tissue has no meaning beside coords: the list says which windows are wanted");
  }
  if (!(windows.tissue_share >= 0.0 && windows.tissue_share <= 1.0)) {
    throw ConfigError("tissue_share is " + to_toml_number(windows.tissue_share) + "; expected 0 to 1");
  }
}

struct TileStream::Impl {
  explicit Impl(TileStreamOptions given)
      : options(std::move(given)),
        memory(std::make_shared<BatchMemory>(window_bytes() * batch_windows(), 0)),
        order(options, chunk_windows()) {}

  std::size_t window_bytes() const {
    return static_cast<std::size_t>(options.windows.size.width * options.windows.size.height * rgb_samples);
  }
  std::size_t batch_windows() const { return static_cast<std::size_t>(options.batch); }
  std::int64_t allowed_batches(std::size_t batch_bytes) const {
    return static_cast<std::int64_t>((static_cast<std::size_t>(options.memory_mib) << 20) / batch_bytes);
  }
  /// Windows without a grid that are made together: tiles that several of them touch are decoded once.
  std::int64_t chunk_windows() const {
    constexpr std::int64_t most_batches = 8;
    return std::clamp<std::int64_t>(allowed_batches(memory->bytes()) / 4, 1, most_batches) * options.batch;
  }

  void work();
  // Without the lock.
  std::shared_ptr<PlannedWindows> plan(WindowSegment segment) const;
  void run(Job& job, TileReader& reader, std::vector<std::uint8_t>& scratch) const;
  void finish_window(const PlannedWindows& windows, std::size_t window, const Target& target) const;

  // With the lock.
  bool take_job(Job& job, std::unique_lock<std::mutex>& lock);
  void plan_ahead(std::unique_lock<std::mutex>& lock);
  void begin_segment();
  bool may_begin_windows() const;
  void open_batches(std::int64_t last);
  void begin_windows();
  void find_targets(Job& job);
  OpenBatch& batch_of(std::int64_t window) {
    return *open[static_cast<std::size_t>(window / options.batch - delivered)];
  }
  /// Whether the batch that is due is whole.
  bool is_due() const;

  const TileStreamOptions options;
  const pid_t process = ::getpid();
  const std::shared_ptr<BatchMemory> memory;
  WindowOrder order;  ///< used by the thread that set `planning`
  std::vector<std::thread> threads;
  std::mutex joining;  ///< held by who joins the threads

  mutable std::mutex mutex;  ///< guards all that follows
  std::condition_variable work_changed;
  std::condition_variable batches_changed;
  bool stopping = false;
  bool exhausted = false;  ///< all windows were begun
  int running = 0;         ///< jobs
  std::exception_ptr failure;
  TileStreamFigures figures;

  std::shared_ptr<PlannedWindows> planned;  ///< behind the current ones
  bool all_planned = false;
  std::exception_ptr planning_failure;
  bool planning = false;
  std::shared_ptr<PlannedWindows> current;
  std::optional<TileWalk> walk;  ///< over the current windows; none between two segments
  bool row_begun = false;        ///< the windows that the walk's row of tiles touches were begun
  std::size_t rows_begun = 0;    ///< rows of windows of the current segment

  std::deque<std::unique_ptr<OpenBatch>> open;  ///< from number `delivered` on
  std::int64_t delivered = 0;                   ///< batches
  std::int64_t most_open = 0;
};

std::shared_ptr<PlannedWindows> TileStream::Impl::plan(WindowSegment segment) const {
  auto planned_windows = std::make_shared<PlannedWindows>();
  planned_windows->segment = std::move(segment);
  const WindowPlan& windows = planned_windows->plan();
  const Level& level = planned_windows->level();
  planned_windows->source = on_level(windows);
  planned_windows->source_size = size_on_level(windows.resolution, options.windows.size);
  const Size& source = planned_windows->source_size;
  const auto together = [&](std::size_t rows) {
    return most_windows_together(level, planned_windows->source, source, rows);
  };
  std::size_t batch_bytes = memory->bytes();
  if (!windows.resolution.is_level()) {
    planned_windows->memory =
        std::make_shared<BatchMemory>(static_cast<std::size_t>(source.width * source.height * rgb_samples), 0);
    batch_bytes += planned_windows->memory->bytes() * batch_windows();
  }
  std::size_t& rows = planned_windows->rows_at_a_time;
  rows = std::max<std::size_t>(windows.rows.size(), 1);
  if (planned_windows->segment.is_scattered) {
    planned_windows->batches_wanted = (chunk_windows() + options.batch - 1) / options.batch + 1;
  } else {
    // Rows of windows that have tiles in common stay together; where memory is short for that, fewer do.
    const std::int64_t allowed = allowed_batches(batch_bytes);
    const auto batches = [&](std::size_t of) { return (together(of) + options.batch - 1) / options.batch + 1; };
    while (rows > 1 && batches(rows) > allowed) rows /= 2;
    planned_windows->batches_wanted = batches(rows);
  }
  if (planned_windows->memory) planned_windows->memory->keep(static_cast<std::size_t>(together(rows)));
  return planned_windows;
}

void TileStream::Impl::plan_ahead(std::unique_lock<std::mutex>& lock) {
  planning = true;
  lock.unlock();
  std::shared_ptr<PlannedWindows> made;
  std::exception_ptr caught;
  try {
    std::optional<WindowSegment> segment = order.next();
    if (segment) made = plan(std::move(*segment));
  } catch (...) {
    caught = std::current_exception();
  }
  lock.lock();
  planning = false;
  // It is told when its windows are due.
  planning_failure = caught;
  all_planned = made == nullptr;
  planned = std::move(made);
  work_changed.notify_all();
}

void TileStream::Impl::begin_segment() {
  current = std::move(planned);
  planned = nullptr;
  walk.emplace(current->level(), current->source, current->source_size, current->rows_at_a_time);
  row_begun = true;
  rows_begun = 0;
  most_open = std::max(most_open, current->batches_wanted + options.prefetch);
  // Besides those, one that the caller has.
  memory->keep(static_cast<std::size_t>(most_open) + 1);
}

bool TileStream::Impl::may_begin_windows() const {
  const WindowSegment& segment = current->segment;
  const auto& rows = segment.plan.rows;
  const WindowRow& last = rows[walk->last_row() - 1];
  const bool is_scattered = segment.is_scattered;
  const std::int64_t last_window = is_scattered ? segment.last - 1 : segment.number(last.first + last.count - 1);
  const std::int64_t earliest = is_scattered ? segment.first : segment.number(rows[walk->first_row()].first);
  // Where the batch that is due waits for this row of tiles, there is no choice.
  return last_window / options.batch < delivered + most_open || earliest / options.batch <= delivered;
}

/// Opens the batches that hold windows up to number `last`.
void TileStream::Impl::open_batches(std::int64_t last) {
  while (last / options.batch - delivered >= std::ssize(open)) {
    open.push_back(std::make_unique<OpenBatch>(options.batch, memory->take()));
  }
}

void TileStream::Impl::begin_windows() {
  const WindowSegment& segment = current->segment;
  for (; rows_begun < walk->last_row(); ++rows_begun) {
    const WindowRow& row = segment.plan.rows[rows_begun];
    for (std::size_t i = row.first; i < row.first + row.count; ++i) {
      const std::int64_t window = segment.number(i);
      open_batches(window);
      OpenBatch& batch = batch_of(window);
      const auto place = static_cast<std::size_t>(window % options.batch);
      batch.tiles_left[place] = walk->tiles_of({current->source.columns[i], current->source.rows[rows_begun].y,
                                                current->source_size.width, current->source_size.height});
      if (current->memory) batch.sources[place] = current->memory->take();
      batch.coords[2 * place] = segment.corners[i].x;
      batch.coords[2 * place + 1] = segment.corners[i].y;
      batch.slides[place] = segment.place;
      ++batch.count;
      ++figures.windows;
    }
  }
  row_begun = true;
}

void TileStream::Impl::find_targets(Job& job) {
  job.windows = current;
  job.targets.clear();
  for (const WindowPart& part : job.work.parts) {
    const std::int64_t window = current->segment.number(part.window);
    job.targets.push_back({&batch_of(window), static_cast<std::size_t>(window % options.batch)});
  }
}

/// Waits for a tile that may be decoded; false: there is nothing more to do.
bool TileStream::Impl::take_job(Job& job, std::unique_lock<std::mutex>& lock) {
  while (!stopping && failure == nullptr) {
    if (planned == nullptr && !planning && !all_planned) {
      plan_ahead(lock);
    } else if (!walk && planning_failure != nullptr) {
      failure = planning_failure;
    } else if (!walk && planned != nullptr) {
      begin_segment();
    } else if (!walk && all_planned) {
      exhausted = true;
      break;
    } else if (!walk) {
      work_changed.wait(lock);
    } else if (!row_begun) {
      if (may_begin_windows()) {
        begin_windows();
        work_changed.notify_all();
      } else {
        work_changed.wait(lock);
      }
    } else if (walk->next_tile(job.work)) {
      find_targets(job);
      ++figures.tiles_decoded;
      return true;
    } else if (walk->next_row()) {
      row_begun = false;
    } else {
      walk.reset();
    }
  }
  work_changed.notify_all();
  batches_changed.notify_all();
  return false;
}

void TileStream::Impl::run(Job& job, TileReader& reader, std::vector<std::uint8_t>& scratch) const {
  const PlannedWindows& windows = *job.windows;
  const Level& level = windows.level();
  const std::vector<WindowPart>& parts = job.work.parts;
  const Size& size = windows.source_size;
  const WindowLayout layout = windows.memory ? WindowLayout::interleaved : options.layout;
  const std::int64_t tile_x = job.work.tile % level.columns * level.tile_width;
  const std::int64_t tile_y = job.work.tile / level.columns * level.tile_height;
  const auto window_at = [&](const Target& target) {
    return windows.memory ? target.batch->sources[target.place]->data()
                          : target.batch->window(target.place, window_bytes());
  };
  const auto read = [&](const Rect& rect, std::uint8_t* to, std::int64_t pitch) {
    reader.read(windows.slide(), windows.plan().resolution.level, job.work.tile, rect.x - tile_x, rect.y - tile_y,
                {to, pitch, rect.width, rect.height, rgb_format}, options.windows.on_bad_tile);
  };
  if (parts.size() == 1 && layout == WindowLayout::interleaved) {
    const auto& [window, whole, part] = parts.front();
    read(part, window_at(job.targets.front()) + ((part.y - whole.y) * size.width + (part.x - whole.x)) * rgb_samples,
         size.width * rgb_samples);
  } else {
    // What any window wants of it.
    Rect all = parts.front().part;
    for (const auto& [window, whole, part] : parts) {
      const std::int64_t right = std::max(all.right(), part.right());
      const std::int64_t bottom = std::max(all.bottom(), part.bottom());
      all.x = std::min(all.x, part.x);
      all.y = std::min(all.y, part.y);
      all.width = right - all.x;
      all.height = bottom - all.y;
    }
    scratch.resize(static_cast<std::size_t>(all.width * all.height * rgb_samples));
    read(all, scratch.data(), all.width * rgb_samples);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& [window, whole, part] = parts[i];
      std::uint8_t* const to = window_at(job.targets[i]);
      for (std::int64_t y = part.y; y < part.bottom(); ++y) {
        copy_pixels(to, size, layout, part.x - whole.x, y - whole.y,
                    scratch.data() + ((y - all.y) * all.width + part.x - all.x) * rgb_samples, part.width);
      }
    }
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Target& target = job.targets[i];
    if (target.batch->tiles_left[target.place].fetch_sub(1, std::memory_order_acq_rel) != 1) continue;
    finish_window(windows, parts[i].window, target);
    target.batch->windows_made.fetch_add(1, std::memory_order_release);
  }
}

/// All tiles of a window are there: makes it of the resolution that is asked for, and fills what lies beyond the edge.
void TileStream::Impl::finish_window(const PlannedWindows& windows, std::size_t window, const Target& target) const {
  const Level& level = windows.level();
  const Resolution& resolution = windows.plan().resolution;
  const Size& size = options.windows.size;
  const Size image = resolution.size_of(level);
  const auto row = std::ranges::upper_bound(windows.plan().rows, window, {}, &WindowRow::first) - 1;
  const std::int64_t x = windows.plan().columns[window];
  const Rect inside = {x, row->y, std::min(size.width, image.width - x), std::min(size.height, image.height - row->y)};
  std::uint8_t* const to = target.batch->window(target.place, window_bytes());
  if (windows.memory) {
    const std::shared_ptr<BatchMemory::Lease> source = std::move(target.batch->sources[target.place]);
    resample_window(to, size, options.layout, inside, {level.width, level.height}, resolution.factor, source->data(),
                    windows.source_size.width * rgb_samples);
  }
  if (inside.width < size.width || inside.height < size.height) {
    fill_beyond(to, size, options.layout, inside.width, inside.height, options.fill);
  }
}

bool TileStream::Impl::is_due() const {
  if (open.empty()) return false;
  const std::int64_t made = open.front()->windows_made.load(std::memory_order_acquire);
  return made == options.batch || (exhausted && made == open.front()->count);
}

void TileStream::Impl::work() {
  TileReader reader;
  std::vector<std::uint8_t> scratch;
  Job job;
  std::unique_lock lock(mutex);
  while (true) {
    try {
      if (!take_job(job, lock)) return;
      ++running;
      lock.unlock();
      std::exception_ptr caught;
      try {
        run(job, reader, scratch);
      } catch (...) {
        caught = std::current_exception();
      }
      lock.lock();
      --running;
      if (caught != nullptr && failure == nullptr) failure = caught;
    } catch (...) {
      // Memory for a batch can't be had.
      if (failure == nullptr) failure = std::current_exception();
    }
    if (failure != nullptr || is_due()) batches_changed.notify_all();
  }
}

TileStream::TileStream(TileStreamOptions options) {
  check_options(options);
  impl_ = std::make_unique<Impl>(std::move(options));
  runtime::require_memory(impl_->memory->bytes(), "a batch");
  const int threads = impl_->options.threads > 0 ? impl_->options.threads : runtime::available_processors();
  try {
    for (int i = 0; i < threads; ++i) impl_->threads.emplace_back([impl = impl_.get()] { impl->work(); });
  } catch (...) {
    close();
    throw;
  }
}

TileStream::~TileStream() {
  close();
  // In a child its threads can't be joined, and what they were doing can't be known.
  if (impl_->process != ::getpid()) static_cast<void>(impl_.release());
}

void TileStream::close() noexcept {
  // A child that was forked has the object, but not its threads, and the lock as some thread had it.
  if (impl_->process != ::getpid()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->work_changed.notify_all();
  impl_->batches_changed.notify_all();
  const std::lock_guard lock(impl_->joining);
  for (std::thread& thread : impl_->threads) {
    if (thread.joinable()) thread.join();
  }
  impl_->memory->keep(0);
}

TileStream::State TileStream::next(TileBatch& batch, std::chrono::milliseconds patience) {
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
      return State::waiting;
    }
    if (impl.stopping) return State::end;
    if (!impl.is_due()) {
      if (impl.failure != nullptr) std::rethrow_exception(impl.failure);
      return State::end;
    }
    made = std::move(impl.open.front());
    impl.open.pop_front();
    ++impl.delivered;
  }
  impl.work_changed.notify_all();
  batch.pixels = std::move(made->pixels);
  batch.coords = std::move(made->coords);
  batch.slides = std::move(made->slides);
  batch.count = made->count;
  batch.coords.resize(static_cast<std::size_t>(2 * batch.count));
  batch.slides.resize(static_cast<std::size_t>(batch.count));
  const std::size_t used = static_cast<std::size_t>(batch.count) * impl.window_bytes();
  std::memset(batch.pixels->data() + used, 0, impl.memory->bytes() - used);
  return State::batch;
}

TileStreamFigures TileStream::figures() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->figures;
}

std::int64_t TileStream::count_windows(const TileStreamOptions& options) {
  check_options(options);
  return WindowOrder(options, 1).count();
}

}  // namespace slidestream
