// The part of the CUDA runtime that the graph uses, on the host: device memory is host memory, and each stream a thread
// that works through its queue. So the GPU's lane runs, asynchronously, where there is no GPU, under every sanitizer.

#include <cuda_runtime_api.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "support/fake_cuda/fake_cuda.hpp"

struct CUstream_st {
  CUstream_st() : thread([this] { work(); }) {}
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
      if (task) task();
      lock.lock();
      tasks.pop_front();
      changed.notify_all();
      if (!task) return;
    }
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;  ///< the first is under way
  std::thread thread;
};

struct CUevent_st {
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
std::atomic<bool> lost{false};
std::atomic<int> device_count{1};
thread_local int current_device = 0;

cudaError_t state() { return lost ? cudaErrorLaunchFailure : cudaSuccess; }
}  // namespace

void fake_launch(cudaStream_t stream, std::function<void()> work) { stream->push(std::move(work)); }
void fake_lose_device(bool is_lost) { lost = is_lost; }
void fake_set_devices(int count) { device_count = count; }

}  // namespace slidestream::test

using namespace slidestream::test;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) { return *count = device_count, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "Fake GPU");
  properties->major = 9;
  properties->totalGlobalMem = std::size_t{8} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int, int) { return *id = 0, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = current_device, state(); }
cudaError_t cudaSetDevice(int device) { return current_device = device, state(); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{4} << 30;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "unspecified launch failure"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorLaunchFailure"; }
cudaError_t cudaGetLastError() { return state(); }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) { return std::free(memory), cudaSuccess; }
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) { return stream->drain(), state(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  const std::uint64_t number = event->newest();
  stream->push([event, number] { event->wait(number); });
  return state();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = new CUevent_st, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const std::uint64_t number = event->record();
  stream->push([event, number] { event->reach(number); });
  return state();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return event->wait(event->newest()), state(); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const std::lock_guard lock(start->mutex);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return state();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  stream->push([=] { function(data); });
  return state();
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  stream->push([=] { std::memset(to, value, bytes); });
  return state();
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  stream->push([=] { std::memcpy(to, from, bytes); });
  return state();
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind, cudaStream_t stream) {
  stream->push([=] {
    for (std::size_t y = 0; y < height; ++y) {
      std::memcpy(static_cast<char*>(to) + y * to_pitch, static_cast<const char*>(from) + y * from_pitch, width);
    }
  });
  return state();
}

}  // extern "C"
