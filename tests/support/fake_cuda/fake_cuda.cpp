// The part of the CUDA runtime that the graph uses, on the host: device memory is host memory, and each stream a thread
// that works through its queue. So the GPU's lane runs, asynchronously, where there is no GPU, under every sanitizer.

#include "support/fake_cuda/fake_cuda.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <thread>

#include "support/random_pause.hpp"

namespace slidestream::test {
namespace {

/// When parts of a device have nothing to do any more.
struct Timeline {
  std::mutex mutex;
  std::chrono::steady_clock::time_point free;

  /// Returns after `seconds` of its own.
  void take(double seconds) {
    std::chrono::steady_clock::time_point end;
    {
      const std::lock_guard lock(mutex);
      const auto taken =
          std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
      end = free = std::max(free, std::chrono::steady_clock::now()) + taken;
    }
    std::this_thread::sleep_until(end);
  }
};
struct Device {
  Timeline kernels, uploads, downloads;
};

std::vector<std::size_t> devices_at_first() {
  const char* const said = std::getenv("SLIDESTREAM_FAKE_GPUS");
  if (fake_times() == nullptr || said == nullptr) return {std::size_t{4} << 30, std::size_t{4} << 30};
  return std::vector<std::size_t>(static_cast<std::size_t>(std::atoi(said)), std::size_t{24} << 30);
}

struct Machine {
  std::mutex mutex;
  std::vector<std::size_t> free_bytes = devices_at_first();
  std::array<Device, 16> devices;
  std::map<const std::byte*, std::size_t> pinned;  ///< host memory
  std::set<int> contexts;                          ///< devices that have one
  std::map<int, std::size_t> kernels;              ///< launched, by device
  std::map<void*, std::span<std::byte>> mapped;    ///< large device memory, with all that was mapped for it
  std::deque<std::span<std::byte>> given_back;     ///< of that, the latest: nobody may touch it
};

Machine& machine() {
  static Machine made;
  return made;
}

std::atomic<bool> lost{false};
std::atomic<bool> failed{false};
std::atomic<int> calls_to_failure{-1};
std::atomic<FakeFailure> planned{FakeFailure::once};
std::atomic<bool> dawdling{std::getenv("SLIDESTREAM_TEST_SEED") != nullptr};
thread_local int current_device = 0;
std::atomic<int> machines{1};         ///< that were made up so far
thread_local int machine_in_use = 0;  ///< on which this thread has a context of its current device

[[noreturn]] void broken(const char* rule) {
  std::fprintf(stderr, "CUDA was used wrongly: %s\n", rule);
  std::abort();
}

/// As the runtime does with the first call of a thread that wants a device, and when one is set.
void use_context() {
  machine_in_use = machines;
  const std::lock_guard lock(machine().mutex);
  machine().contexts.insert(current_device);
}

int current_context(void** context) {
  static int some = 0;
  *context = machine_in_use == machines ? &some : nullptr;
  return 0;
}

/// What a call that can fail comes to.
cudaError_t call() {
  use_context();
  if (calls_to_failure.load() >= 0 && calls_to_failure.fetch_sub(1) == 0) {
    failed = true;
    if (planned == FakeFailure::for_ever) lost = true;
    return cudaErrorLaunchFailure;
  }
  return lost ? cudaErrorLaunchFailure : cudaSuccess;
}

void check_pinned(const void* memory, std::size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(machine().mutex);
  auto range = machine().pinned.upper_bound(begin);
  if (range == machine().pinned.begin()) broken("a copy of host memory that isn't pinned");
  --range;
  if (begin + bytes > range->first + range->second) broken("a copy of host memory that isn't pinned");
}

void check_mapped(const std::byte* begin, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  if (mincore(const_cast<std::byte*>(begin), bytes, pages.data()) != 0) broken("pinned memory went away");
}

/// Device memory of which an allocator with a sanitizer would mark every byte, each time: mapped, and pages that nobody
/// may touch before it and behind its last byte. None: null.
void* map_memory(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t used = (bytes + page - 1) / page * page;
  void* const all = mmap(nullptr, used + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  std::byte* const first = static_cast<std::byte*>(all) + page;
  if (mprotect(first, used, PROT_READ | PROT_WRITE) != 0) return munmap(all, used + 2 * page), nullptr;
  void* const memory = first + used - bytes;
  std::memset(memory, 0xBE, std::min(bytes, page));  // it holds anything
  const std::lock_guard lock(machine().mutex);
  machine().mapped[memory] = {static_cast<std::byte*>(all), used + 2 * page};
  return memory;
}

/// Whether it was mapped. Whoever still uses it is found out.
bool unmap_memory(void* memory) {
  constexpr std::size_t kept = 16;
  const std::lock_guard lock(machine().mutex);
  const auto found = machine().mapped.find(memory);
  if (found == machine().mapped.end()) return false;
  const std::span<std::byte> all = found->second;
  machine().mapped.erase(found);
  mmap(all.data(), all.size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  machine().given_back.push_back(all);
  if (machine().given_back.size() <= kept) return true;
  munmap(machine().given_back.front().data(), machine().given_back.front().size());
  machine().given_back.pop_front();
  return true;
}

}  // namespace
}  // namespace slidestream::test

using namespace slidestream::test;

struct CUstream_st {
  CUstream_st() : device(current_device), thread([this] { work(); }) {}
  ~CUstream_st() {
    push({});
    thread.join();
  }

  void push(std::function<void()> task) {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
    changed.notify_all();
  }

  void drain() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return tasks.empty(); });
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return !tasks.empty(); });
      const std::function<void()> task = tasks.front();
      lock.unlock();
      if (task) {
        if (dawdling) random_pause();
        task();
      }
      lock.lock();
      tasks.pop_front();
      changed.notify_all();
      if (!task) return;
    }
  }

  int device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;  ///< the first is under way
  std::thread thread;
};

struct CUevent_st {
  int device = current_device;
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t reached = 0;
  std::chrono::steady_clock::time_point time;

  std::uint64_t record() {
    const std::lock_guard lock(mutex);
    return ++recorded;
  }
  void reach(std::uint64_t number) {
    const std::lock_guard lock(mutex);
    reached = std::max(reached, number);
    time = std::chrono::steady_clock::now();
    changed.notify_all();
  }
  void wait(std::uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= number; });
  }
  std::uint64_t newest() {
    const std::lock_guard lock(mutex);
    return recorded;
  }
};

namespace slidestream::test {
namespace {

/// A stream that a program made, or the default stream of the current device.
cudaStream_t stream_of(cudaStream_t named) {
  if (named != cudaStreamLegacy) return named;
  static std::mutex mutex;
  static std::map<int, CUstream_st*> streams;  // never destroyed: programs end with work under way
  const std::lock_guard lock(mutex);
  CUstream_st*& found = streams[current_device];
  if (found == nullptr) found = new CUstream_st;
  return found;
}

/// Work that a lost device doesn't do any more.
void put(cudaStream_t stream, std::function<void()> work) {
  stream->push([work = std::move(work)] {
    if (!lost) work();
  });
}

}  // namespace

const FakeTimes* fake_times() {
  static const auto times = []() -> std::optional<FakeTimes> {
    const char* const said = std::getenv("SLIDESTREAM_FAKE_TIMES");
    FakeTimes read;
    if (said == nullptr) return std::nullopt;
    if (std::sscanf(said, "%lf %lf %lf %lf", &read.copied_byte, &read.placed_byte, &read.decoded_tile, &read.window) !=
        4) {
      broken("SLIDESTREAM_FAKE_TIMES isn't four numbers");
    }
    return read;
  }();
  return times ? &*times : nullptr;
}

cudaError_t fake_timed_launch(cudaStream_t stream, double seconds, std::function<void()> work) {
  return fake_launch(stream, [seconds, work = std::move(work), device = static_cast<std::size_t>(stream->device)] {
    work();
    machine().devices.at(device).kernels.take(seconds);
  });
}

cudaError_t fake_launch(cudaStream_t named, std::function<void()> work) {
  const cudaStream_t stream = stream_of(named);
  if (stream->device != current_device) broken("a kernel on another device's stream");
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  {
    const std::lock_guard lock(machine().mutex);
    ++machine().kernels[stream->device];
  }
  put(stream, std::move(work));
  return cudaSuccess;
}

void fake_dawdle(bool on) { dawdling = on; }

std::set<int> fake_contexts() {
  const std::lock_guard lock(machine().mutex);
  return machine().contexts;
}

std::map<int, std::size_t> fake_kernels() {
  const std::lock_guard lock(machine().mutex);
  return machine().kernels;
}

std::size_t fake_pinned() {
  const std::lock_guard lock(machine().mutex);
  return machine().pinned.size();
}

void fake_set_devices(const std::vector<std::size_t>& free_bytes) {
  const std::lock_guard lock(machine().mutex);
  machine().contexts.clear();
  machine().kernels.clear();
  ++machines;
  machine().free_bytes = free_bytes;
}

void fake_fail_call(int number, FakeFailure failure) {
  failed = lost = false;
  planned = failure;
  calls_to_failure = number;
}

bool fake_recover() {
  calls_to_failure = -1;
  lost = false;
  return failed.exchange(false);
}

}  // namespace slidestream::test

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const std::lock_guard lock(machine().mutex);
  return *count = static_cast<int>(machine().free_bytes.size()), cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "Fake GPU");
  properties->major = 9;
  properties->totalGlobalMem = std::size_t{8} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int, int) { return *id = 0, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current_device, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return call();
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** entry, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  *entry = reinterpret_cast<void*>(&current_context);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  {
    const std::lock_guard lock(machine().mutex);
    *free = *total = machine().free_bytes[static_cast<std::size_t>(current_device)];
  }
  return call();
}
const char* cudaGetErrorString(cudaError_t) { return "unspecified launch failure"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorLaunchFailure"; }
cudaError_t cudaGetLastError() { return lost ? cudaErrorLaunchFailure : cudaSuccess; }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  constexpr std::size_t large = std::size_t{1} << 20;
  const std::size_t whole = (bytes + 511) / 512 * 512;
  *memory = whole < large ? std::aligned_alloc(512, whole) : map_memory(whole);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  use_context();
  if (!unmap_memory(memory)) std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  const std::lock_guard lock(machine().mutex);
  machine().pinned[static_cast<std::byte*>(memory)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory) {
  use_context();
  const std::lock_guard lock(machine().mutex);
  const auto range = machine().pinned.find(static_cast<std::byte*>(memory));
  if (range == machine().pinned.end()) broken("memory is unpinned that wasn't pinned");
  check_mapped(range->first, range->second);
  machine().pinned.erase(range);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t named) { return stream_of(named)->drain(), call(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  const std::uint64_t number = event->newest();
  stream->push([event, number] { event->wait(number); });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  return *event = new CUevent_st, cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  // Streams may still have it before them: as the runtime does, it goes when nobody needs it, which here is at the end.
  static std::mutex mutex;
  static auto* const gone = new std::deque<std::unique_ptr<CUevent_st>>;
  const std::lock_guard lock(mutex);
  gone->emplace_back(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t named) {
  const cudaStream_t stream = stream_of(named);
  if (event->device != stream->device) broken("an event on another device's stream");
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  const std::uint64_t number = event->record();
  stream->push([event, number] { event->reach(number); });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  const std::scoped_lock lock(event->mutex);
  return event->reached >= event->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return event->wait(event->newest()), call(); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start->device != end->device) broken("time between events of two devices");
  const std::scoped_lock lock(start->mutex, end->mutex);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return call();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  put(stream, [=] { function(data); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  put(stream, [=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind == cudaMemcpyHostToDevice) check_pinned(from, bytes);
  if (kind == cudaMemcpyDeviceToHost) check_pinned(to, bytes);
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  if (const FakeTimes* const times = fake_times(); times != nullptr && kind != cudaMemcpyDeviceToDevice) {
    Device& device = machine().devices.at(static_cast<std::size_t>(stream->device));
    const bool up = kind == cudaMemcpyHostToDevice;
    put(stream, [=, &timeline = up ? device.uploads : device.downloads, a_byte = times->copied_byte] {
      if (!up) std::memcpy(to, from, bytes);
      timeline.take(a_byte * static_cast<double>(bytes));
    });
    return cudaSuccess;
  }
  put(stream, [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  const cudaStream_t stream = stream_of(cudaStreamLegacy);
  if (kind == cudaMemcpyHostToDevice) {
    // As the runtime may, it returns when the bytes are put aside; only the default stream waits for them.
    const auto* const begin = static_cast<const std::byte*>(from);
    put(stream, [to, kept = std::vector<std::byte>(begin, begin + bytes)] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (!kept.empty()) std::memcpy(to, kept.data(), kept.size());
    });
    return cudaSuccess;
  }
  stream->drain();
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (kind == cudaMemcpyHostToDevice) check_pinned(from, from_pitch * (height - 1) + width);
  if (const cudaError_t error = call(); error != cudaSuccess) return error;
  put(stream, [=] {
    for (std::size_t y = 0; y < height; ++y) {
      std::memcpy(static_cast<char*>(to) + y * to_pitch, static_cast<const char*>(from) + y * from_pitch, width);
    }
  });
  return cudaSuccess;
}

}  // extern "C"
