#include "tiling/tile_stream.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <slidestream/error.hpp>
#include <thread>
#include <utility>

#include "config/toml_text.hpp"
#include "runtime/machine.hpp"
#include "slide/tile_reader.hpp"
#include "tiling/stream_state.hpp"
#include "tiling/tile_walk.hpp"
#include "tiling/white_tiles.hpp"
#include "tiling/window_maker.hpp"
#include "tiling/window_order.hpp"

namespace slidestream {

namespace {

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

struct TileStream::Impl : StreamState<WindowMaker::Batch, WindowMaker::Windows> {
  explicit Impl(TileStreamOptions given)
      : StreamState(given.batch), options(std::move(given)), maker(options), order(options, maker.chunk_windows()) {}

  void work();
  // With the lock.
  bool take_job(WindowMaker::Job& job, std::unique_lock<std::mutex>& lock);
  void begin_segment();
  bool may_begin_windows() const;
  void open_batches(std::int64_t last);
  void begin_windows();
  void find_targets(WindowMaker::Job& job);
  WindowMaker::Batch& batch_of(std::int64_t window) {
    return *open[static_cast<std::size_t>(window / options.batch - delivered)];
  }

  const TileStreamOptions options;
  const WindowMaker maker;
  WindowOrder order;  ///< used by the thread that set `planning`
  WhiteTiles white;

  // The lock guards these, too.
  TileStreamFigures figures;
  std::optional<TileWalk> walk;  ///< over the current windows; none between two segments
  bool row_begun = false;        ///< the windows that the walk's row of tiles touches were begun
  std::size_t rows_begun = 0;    ///< rows of windows of the current segment
};

void TileStream::Impl::begin_segment() {
  current = std::move(planned);
  planned = nullptr;
  walk.emplace(current->level(), current->source, current->source_size, current->rows_at_a_time);
  row_begun = true;
  rows_begun = 0;
  most_open = std::max(most_open, current->batches_wanted + options.prefetch);
  // Besides those, one that the caller has.
  maker.memory()->keep(static_cast<std::size_t>(most_open) + 1);
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
    open.push_back(std::make_unique<WindowMaker::Batch>(options.batch, maker.memory()->take()));
  }
}

void TileStream::Impl::begin_windows() {
  const WindowSegment& segment = current->segment;
  for (; rows_begun < walk->last_row(); ++rows_begun) {
    const WindowRow& row = segment.plan.rows[rows_begun];
    for (std::size_t i = row.first; i < row.first + row.count; ++i) {
      const std::int64_t window = segment.number(i);
      open_batches(window);
      WindowMaker::Batch& batch = batch_of(window);
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

void TileStream::Impl::find_targets(WindowMaker::Job& job) {
  job.windows = current;
  job.targets.clear();
  for (const WindowPart& part : job.work.parts) {
    const std::int64_t window = current->segment.number(part.window);
    job.targets.push_back({&batch_of(window), static_cast<std::size_t>(window % options.batch)});
  }
}

/// Waits for a tile that may be decoded; false: there is nothing more to do.
bool TileStream::Impl::take_job(WindowMaker::Job& job, std::unique_lock<std::mutex>& lock) {
  while (!stopping && failure == nullptr) {
    if (planned == nullptr && !planning && !all_planned) {
      plan_ahead(lock, [this]() -> std::shared_ptr<WindowMaker::Windows> {
        std::optional<WindowSegment> segment = order.next();
        return segment ? maker.plan(std::move(*segment)) : nullptr;
      });
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

void TileStream::Impl::work() {
  TileReader reader;
  std::vector<std::uint8_t> scratch;
  WindowMaker::Job job;
  std::unique_lock lock(mutex);
  while (true) {
    try {
      if (!take_job(job, lock)) return;
      run_unlocked(lock, [&] { maker.make(job, reader, scratch, white); });
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
  runtime::require_memory(impl_->maker.memory()->bytes(), "a batch");
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
  if (impl_->is_forked()) static_cast<void>(impl_.release());
}

void TileStream::close() noexcept {
  if (impl_->is_forked()) return;
  impl_->stop();
  impl_->maker.memory()->keep(0);
}

TileStream::State TileStream::next(TileBatch& batch, std::chrono::milliseconds patience) {
  Impl& impl = *impl_;
  State state = State::end;
  const std::unique_ptr<WindowMaker::Batch> made = impl.take_due(batch, patience, state);
  if (made == nullptr) {
    const auto slides = static_cast<std::int32_t>(impl.options.slides.size());
    if (state == State::end && !impl.was_left()) impl.white.tell(slides, impl.options);
    return state;
  }
  if (!impl.options.shuffle) impl.white.tell(batch.slides.back(), impl.options);
  batch.pixels = std::move(made->pixels);
  const std::size_t used = static_cast<std::size_t>(batch.count) * impl.maker.window_bytes();
  std::memset(batch.pixels->data() + used, 0, impl.maker.memory()->bytes() - used);
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
