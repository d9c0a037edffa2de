#include "runtime/trace.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include <slidestream/error.hpp>

#ifdef SLIDESTREAM_HAVE_CUDA
#include <nvtx3/nvToolsExt.h>

#include "runtime/cuda/activity.hpp"
#endif

namespace slidestream {
namespace {

using runtime::Clock;

/// Ranges of one thread, in blocks that are never moved: the thread appends, and whoever finishes the recording reads
/// what was published, both without locks.
struct Block {
  std::array<TraceRange, 1024> ranges;
  std::atomic<std::size_t> used{0};
  std::atomic<Block*> next{nullptr};
};

/// What threads share while recording.
struct Recording {
  Recording(std::uint64_t recording_number, std::size_t most_ranges)
      : number(recording_number),
        blocks_left(static_cast<std::int64_t>((most_ranges + Block{}.ranges.size() - 1) / Block{}.ranges.size())) {}

  const std::uint64_t number;
  const Clock::time_point begin = Clock::now();
  std::atomic<std::int64_t> blocks_left;
  std::atomic<std::uint64_t> dropped{0};
};

class ThreadBuffer {
 public:
  ThreadBuffer(std::shared_ptr<Recording> recording, std::uint32_t thread)
      : recording_(std::move(recording)), thread_(thread) {}
  ~ThreadBuffer() {
    for (Block* block = first_.load(); block != nullptr;) delete std::exchange(block, block->next.load());
  }
  ThreadBuffer(const ThreadBuffer&) = delete;
  ThreadBuffer& operator=(const ThreadBuffer&) = delete;

  std::uint64_t number() const noexcept { return recording_->number; }

  /// By the buffer's own thread.
  void append(TraceRange range, Clock::time_point start, Clock::time_point end) noexcept {
    if (last_ == nullptr || last_->used.load(std::memory_order_relaxed) == last_->ranges.size()) {
      if (!extend()) {
        recording_->dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    }
    range.start_ns = nanoseconds(start);
    range.end_ns = nanoseconds(end);
    range.thread = thread_;
    const std::size_t used = last_->used.load(std::memory_order_relaxed);
    last_->ranges[used] = range;
    last_->used.store(used + 1, std::memory_order_release);
  }

  /// By any thread.
  void copy_to(std::vector<TraceRange>& ranges) const {
    for (const Block* block = first_.load(std::memory_order_acquire); block != nullptr;
         block = block->next.load(std::memory_order_acquire)) {
      const auto used = static_cast<std::ptrdiff_t>(block->used.load(std::memory_order_acquire));
      ranges.insert(ranges.end(), block->ranges.begin(), block->ranges.begin() + used);
    }
  }

 private:
  bool extend() noexcept {
    if (recording_->blocks_left.fetch_sub(1, std::memory_order_relaxed) <= 0) return false;
    Block* block = new (std::nothrow) Block;
    if (block == nullptr) return false;
    (last_ == nullptr ? first_ : last_->next).store(block, std::memory_order_release);
    last_ = block;
    return true;
  }

  std::int64_t nanoseconds(Clock::time_point time) const noexcept {
    // A range of the recording before, which ends in this one, is shown from its start.
    return std::max<std::int64_t>(
        0, std::chrono::duration_cast<std::chrono::nanoseconds>(time - recording_->begin).count());
  }

  std::shared_ptr<Recording> recording_;
  std::uint32_t thread_;
  std::atomic<Block*> first_{nullptr};
  Block* last_ = nullptr;
};

/// The process's one place where recordings, names and threads meet. Profilers see a process, not an object of it, so
/// there is one of these.
struct Registry {
  std::mutex mutex;
  std::vector<std::string> names;                      // guarded by mutex
  std::shared_ptr<Recording> recording;                // guarded by mutex
  std::vector<std::shared_ptr<ThreadBuffer>> buffers;  // guarded by mutex
  std::uint64_t recordings = 0;                        // guarded by mutex
  std::atomic<std::uint64_t> current{0};               ///< number of the recording under way; 0: none
};

Registry& registry() {
  // Never destroyed: threads may end after the program's statics.
  static Registry& instance = *new Registry;
  return instance;
}

/// A buffer of the recording under way for the calling thread, or none.
std::shared_ptr<ThreadBuffer> join_recording() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (all.recording == nullptr) return nullptr;
  auto buffer = std::make_shared<ThreadBuffer>(all.recording, static_cast<std::uint32_t>(all.buffers.size()));
  all.buffers.push_back(buffer);
  return buffer;
}

/// Ends the recording under way; gives its ranges' buffers.
std::vector<std::shared_ptr<ThreadBuffer>> end_recording() noexcept {
  runtime::RangeListeners::remove(runtime::RangeListeners::recording);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.current.store(0, std::memory_order_release);
  all.recording.reset();
  return std::exchange(all.buffers, {});
}

void record(TraceRange range, Clock::time_point start, Clock::time_point end) noexcept {
  thread_local std::shared_ptr<ThreadBuffer> buffer;
  const std::uint64_t current = registry().current.load(std::memory_order_acquire);
  if (current == 0) return;
  if (buffer == nullptr || buffer->number() != current) {
    try {
      buffer = join_recording();
    } catch (...) {
      // Out of memory: nothing to count it in, and the next range tries again.
      buffer = nullptr;
    }
    if (buffer == nullptr) return;
  }
  buffer->append(range, start, end);
}

#ifdef SLIDESTREAM_HAVE_CUDA
/// Null unless a profiler listens, for the whole life of the process.
nvtxDomainHandle_t nvtx_domain() {
  static const nvtxDomainHandle_t domain = [] {
    const nvtxDomainHandle_t made = nvtxDomainCreateA("slidestream");
    if (made != nullptr) runtime::RangeListeners::add(runtime::RangeListeners::profiler);
    return made;
  }();
  return domain;
}
#endif

}  // namespace

namespace runtime {

RangeName::RangeName(const char* text) : text_(text), index_(0), nvtx_string_(nullptr) {
  Registry& all = registry();
  {
    const std::lock_guard lock(all.mutex);
    const auto known = std::find(all.names.begin(), all.names.end(), text);
    index_ = static_cast<std::uint32_t>(known - all.names.begin());
    if (known == all.names.end()) all.names.emplace_back(text);
  }
#ifdef SLIDESTREAM_HAVE_CUDA
  if (nvtx_domain() != nullptr) nvtx_string_ = nvtxDomainRegisterStringA(nvtx_domain(), text);
#endif
}

void RangeListeners::begin([[maybe_unused]] const RangeName& name,
                           [[maybe_unused]] const RangePayload& payload) const noexcept {
#ifdef SLIDESTREAM_HAVE_CUDA
  if ((bits_ & profiler) == 0) return;
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  // An event has one number: the batch. The slide is its category, from 1, since 0 means none.
  attributes.category = static_cast<std::uint32_t>(payload.slide + 1);
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = payload.batch;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = static_cast<nvtxStringHandle_t>(name.nvtx_string_);
  nvtxDomainRangePushEx(nvtx_domain(), &attributes);
#endif
}

void RangeListeners::end(const RangeName& name, const RangePayload& payload, Clock::time_point start,
                         Clock::time_point end, std::uint64_t bytes) const noexcept {
#ifdef SLIDESTREAM_HAVE_CUDA
  if ((bits_ & profiler) != 0) nvtxDomainRangePop(nvtx_domain());
#endif
  if ((bits_ & recording) == 0) return;
  TraceRange range;
  range.bytes = bytes;
  range.slide = static_cast<std::int32_t>(payload.slide);
  range.batch = static_cast<std::int32_t>(payload.batch);
  range.name = name.index_;
  record(range, start, end);
}

}  // namespace runtime

struct TraceRecording::State {
  std::shared_ptr<Recording> recording;
#ifdef SLIDESTREAM_HAVE_CUDA
  std::unique_ptr<runtime::cuda::ActivityRecorder> activity;
#endif
};

TraceRecording::TraceRecording(const Options& options) : state_(std::make_unique<State>()) {
  Registry& all = registry();
  {
    const std::lock_guard lock(all.mutex);
    if (all.recording != nullptr) throw Error("a trace is being recorded already; there can be one at a time");
    all.recording = state_->recording = std::make_shared<Recording>(++all.recordings, options.most_ranges);
    all.current.store(all.recording->number, std::memory_order_release);
  }
  runtime::RangeListeners::add(runtime::RangeListeners::recording);
#ifdef SLIDESTREAM_HAVE_CUDA
  if (!options.devices) return;
  try {
    const Clock::time_point begin = state_->recording->begin;
    state_->activity = std::make_unique<runtime::cuda::ActivityRecorder>(begin, options.most_records);
  } catch (...) {
    end_recording();
    throw;
  }
#endif
}

TraceRecording::~TraceRecording() {
  if (state_->recording != nullptr) end_recording();
}

Trace TraceRecording::finish() {
  const std::shared_ptr<Recording> recording = std::exchange(state_->recording, nullptr);
  if (recording == nullptr) throw std::logic_error("a trace can be finished once");
  std::vector<std::shared_ptr<ThreadBuffer>> buffers = end_recording();
  Trace trace;
  {
    const std::lock_guard lock(registry().mutex);
    trace.names = registry().names;
  }
  for (std::shared_ptr<ThreadBuffer>& buffer : buffers) {
    buffer->copy_to(trace.ranges);
    buffer.reset();
  }
  trace.dropped_ranges = recording->dropped.load();
#ifdef SLIDESTREAM_HAVE_CUDA
  if (state_->activity != nullptr) state_->activity->finish(trace);
  state_->activity.reset();
#endif
  return trace;
}

}  // namespace slidestream
