#include "runtime/cuda/activity.hpp"

#include <cupti.h>
#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace slidestream::runtime::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// The fields that are read below lie where they have lain since these versions of the records: releases append.
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using FillRecord = CUpti_ActivityMemset4;

constexpr std::array kinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                              CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

constexpr std::size_t buffer_bytes = std::size_t{4} << 20;
constexpr std::size_t buffer_alignment = 8;

/// CUPTI's functions, found when needed.
struct Cupti {
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  std::string missing;  ///< why it can't be used; empty: it can

  std::string reason(CUptiResult code) const {
    const char* text = nullptr;
    if (result_string(code, &text) == CUPTI_SUCCESS && text != nullptr) return text;
    return "error " + std::to_string(static_cast<int>(code));
  }
};

Cupti load() {
  Cupti cupti;
  void* library = nullptr;
  // The system's way first, then where the toolkit puts it. It stays loaded: CUPTI can't be unloaded safely.
  for (const char* folder : {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/extras/CUPTI/lib64/"}) {
    for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
      if (library == nullptr) library = dlopen((std::string(folder) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
  if (library == nullptr) {
    cupti.missing = "CUPTI's library (libcupti.so.13 or .12, part of the CUDA Toolkit) isn't on this machine";
    return cupti;
  }
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) cupti.missing = std::string("CUPTI's library has no ") + name;
  };
  find(cupti.register_callbacks, "cuptiActivityRegisterCallbacks");
  find(cupti.enable, "cuptiActivityEnable");
  find(cupti.disable, "cuptiActivityDisable");
  find(cupti.flush_all, "cuptiActivityFlushAll");
  find(cupti.next_record, "cuptiActivityGetNextRecord");
  find(cupti.dropped_records, "cuptiActivityGetNumDroppedRecords");
  find(cupti.timestamp, "cuptiGetTimestamp");
  find(cupti.result_string, "cuptiGetResultString");
  return cupti;
}

const Cupti& cupti() {
  static const Cupti loaded = load();
  return loaded;
}

std::int64_t nanoseconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

/// The same moment on CUPTI's clock and on ours.
struct ClockPair {
  std::int64_t device = 0;
  std::int64_t host = 0;  ///< since the recording began
};

/// Of several readings the one with the least time around it.
ClockPair read_clocks(Clock::time_point begin) {
  ClockPair best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 32; ++i) {
    std::uint64_t device = 0;
    const std::int64_t before = nanoseconds(Clock::now() - begin);
    if (cupti().timestamp(&device) != CUPTI_SUCCESS) continue;
    const std::int64_t after = nanoseconds(Clock::now() - begin);
    if (after - before >= least) continue;
    least = after - before;
    best = {static_cast<std::int64_t>(device), before + (after - before) / 2};
  }
  return best;
}

/// The line through two pairs.
class ClockMap {
 public:
  ClockMap(const ClockPair& start, const ClockPair& end) : start_(start) {
    const std::int64_t device = end.device - start.device;
    // Over less than a tenth of a second the readings' own error is more than what the clocks drift apart.
    if (device > 100'000'000) drift_ = static_cast<double>(end.host - start.host) / static_cast<double>(device) - 1.0;
  }
  std::int64_t operator()(std::int64_t device) const {
    const std::int64_t passed = device - start_.device;
    return start_.host + passed + std::llround(drift_ * static_cast<double>(passed));
  }

 private:
  ClockPair start_;
  double drift_ = 0.0;
};

/// "smooth_rows" of "void slidestream::cuda::(anonymous namespace)::smooth_rows<3>(float*, int)": what a row of a trace
/// has room for.
std::string kernel_name(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(symbol, nullptr, nullptr, &status),
                                                         &std::free);
  if (status != 0 || text == nullptr) return symbol;
  std::string name = text.get();
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(anonymous); at != std::string::npos; at = name.find(anonymous)) {
    name.erase(at, anonymous.size());
  }
  name.erase(std::min(name.find_first_of("<("), name.size()));
  if (const std::size_t space = name.rfind(' '); space != std::string::npos) name.erase(0, space + 1);
  if (const std::size_t colons = name.rfind("::"); colons != std::string::npos) name.erase(0, colons + 2);
  return name.empty() ? symbol : name;
}

/// Where CUPTI's callbacks put records: they know of no object, so there is one for the process.
class Sink {
 public:
  void open(std::size_t most_records) {
    const std::lock_guard lock(mutex_);
    records_.clear();
    names_.clear();
    symbols_.clear();
    most_ = most_records;
    dropped_ = 0;
  }

  /// Called by CUPTI when it needs room. Buffers that came back are used again.
  void lend(std::uint8_t** buffer, std::size_t* size) noexcept {
    const std::lock_guard lock(free_mutex_);
    *size = 0;
    *buffer = nullptr;
    if (!free_.empty()) {
      *buffer = free_.back();
      free_.pop_back();
    } else {
      *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(buffer_alignment, buffer_bytes));
    }
    if (*buffer != nullptr) *size = buffer_bytes;
  }

  /// Called by CUPTI with a full buffer, or with all of them while flushing. Parsed at once: kernels' names live no
  /// longer than their modules.
  void take_back(std::uint8_t* buffer, std::size_t valid) noexcept {
    parse(buffer, valid);
    const std::lock_guard lock(free_mutex_);
    try {
      free_.push_back(buffer);
    } catch (const std::bad_alloc&) {
      std::free(buffer);
    }
  }

  void close(Trace& trace, const ClockMap& host_time) {
    const std::lock_guard lock(mutex_);
    const auto first_name = static_cast<std::uint32_t>(trace.names.size());
    trace.names.insert(trace.names.end(), names_.begin(), names_.end());
    for (DeviceRecord& record : records_) {
      record.start_ns = host_time(record.start_ns);
      record.end_ns = std::max(record.start_ns, host_time(record.end_ns));
      record.name += first_name;
    }
    trace.device_records = std::exchange(records_, {});
    trace.dropped_device_records = dropped_;
    const std::lock_guard free_lock(free_mutex_);
    for (std::uint8_t* buffer : std::exchange(free_, {})) std::free(buffer);
  }

 private:
  void parse(std::uint8_t* buffer, std::size_t valid) noexcept {
    const std::lock_guard lock(mutex_);
    CUpti_Activity* record = nullptr;
    while (valid > 0 && cupti().next_record(buffer, valid, &record) == CUPTI_SUCCESS) {
      try {
        add(*record);
      } catch (const std::bad_alloc&) {
        ++dropped_;
      }
    }
    std::size_t lost = 0;
    if (cupti().dropped_records(nullptr, 0, &lost) == CUPTI_SUCCESS) dropped_ += lost;
  }

  template <class Record>
  void add(const Record& activity, DeviceRecord::Kind kind, std::uint32_t name, std::uint64_t bytes) {
    // Records without times belong to work that didn't end while CUPTI looked.
    if (activity.start == 0 || activity.end < activity.start) {
      ++dropped_;
      return;
    }
    DeviceRecord record;
    record.start_ns = static_cast<std::int64_t>(activity.start);
    record.end_ns = static_cast<std::int64_t>(activity.end);
    record.bytes = bytes;
    record.name = name;
    record.device = activity.deviceId;
    record.stream = activity.streamId;
    record.kind = kind;
    records_.push_back(record);
  }

  void add(const CUpti_Activity& activity) {
    if (records_.size() >= most_) {
      ++dropped_;
      return;
    }
    switch (activity.kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      case CUPTI_ACTIVITY_KIND_KERNEL: {
        const auto& kernel = reinterpret_cast<const KernelRecord&>(activity);
        add(kernel, DeviceRecord::Kind::kernel, name_of_symbol(kernel.name), 0);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = reinterpret_cast<const CopyRecord&>(activity);
        switch (copy.copyKind) {
          case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
          case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
            add(copy, DeviceRecord::Kind::upload, name("upload"), copy.bytes);
            break;
          case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
          case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
            add(copy, DeviceRecord::Kind::download, name("download"), copy.bytes);
            break;
          default:
            add(copy, DeviceRecord::Kind::device_copy, name("copy on the device"), copy.bytes);
        }
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& copy = reinterpret_cast<const PeerCopyRecord&>(activity);
        add(copy, DeviceRecord::Kind::device_copy, name("copy between devices"), copy.bytes);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = reinterpret_cast<const FillRecord&>(activity);
        add(fill, DeviceRecord::Kind::fill, name("fill"), fill.bytes);
        break;
      }
      default:
        break;
    }
  }

  std::uint32_t name_of_symbol(const char* symbol) {
    if (symbol == nullptr) return name("kernel");
    const auto known = symbols_.find(symbol);
    if (known != symbols_.end()) return known->second;
    const std::uint32_t index = name(kernel_name(symbol));
    symbols_.emplace(symbol, index);
    return index;
  }

  std::uint32_t name(const std::string& text) {
    const auto known = std::find(names_.begin(), names_.end(), text);
    const auto index = static_cast<std::uint32_t>(known - names_.begin());
    if (known == names_.end()) names_.push_back(text);
    return index;
  }

  // Two locks, so that a thread that launches work never waits for parsing.
  std::mutex free_mutex_;
  std::vector<std::uint8_t*> free_;    // guarded by free_mutex_
  std::mutex mutex_;                   // guards the rest
  std::vector<DeviceRecord> records_;  ///< times on CUPTI's clock
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint32_t> symbols_;
  std::size_t most_ = 0;
  std::uint64_t dropped_ = 0;
};

Sink& sink() {
  // Never destroyed: CUPTI hands buffers back while the process ends.
  static Sink& instance = *new Sink;
  return instance;
}

void CUPTIAPI lend_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *most_records = 0;
  sink().lend(buffer, size);
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  if (buffer != nullptr) sink().take_back(buffer, valid);
}

}  // namespace

struct ActivityRecorder::State {
  Clock::time_point begin;
  ClockPair clocks;
  std::string warning;
  bool on = false;

  void start() {
    const Cupti& library = cupti();
    if (!library.missing.empty()) {
      warning = "no GPU records in the trace: " + library.missing;
      return;
    }
    CUptiResult code = library.register_callbacks(&lend_buffer, &take_buffer);
    for (const CUpti_ActivityKind kind : kinds) {
      if (code == CUPTI_SUCCESS) code = library.enable(kind);
    }
    on = true;
    if (code != CUPTI_SUCCESS) {
      stop();
      warning = "no GPU records in the trace: CUPTI says " + library.reason(code);
      return;
    }
    clocks = read_clocks(begin);
  }

  void stop() noexcept {
    if (!on) return;
    on = false;
    for (const CUpti_ActivityKind kind : kinds) cupti().disable(kind);
    // 1: also what isn't full.
    cupti().flush_all(1);
  }
};

ActivityRecorder::ActivityRecorder(Clock::time_point begin, std::size_t most_records)
    : state_(std::make_unique<State>()) {
  state_->begin = begin;
  sink().open(most_records);
  state_->start();
}

ActivityRecorder::~ActivityRecorder() { state_->stop(); }

void ActivityRecorder::finish(Trace& trace) {
  trace.device_warning = state_->warning;
  if (!state_->on) return;
  // CUPTI's own clock stays readable; what is read twice at the run's ends maps all that lies between.
  const ClockPair end = read_clocks(state_->begin);
  state_->stop();
  sink().close(trace, ClockMap(state_->clocks, end));
}

}  // namespace slidestream::runtime::cuda
