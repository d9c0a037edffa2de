#pragma once

#include <blockingconcurrentqueue.h>
#include <cuda_runtime_api.h>

#include <exception>
#include <functional>
#include <thread>

namespace slidestream::runtime::cuda {

/// A thread that waits for events of one device in the order in which they were handed over, so that no worker of the
/// graph ever waits for a GPU. A thread and not host functions on the stream: those aren't called at all once the
/// device has failed, and then nobody would be told.
class CompletionThread {
 public:
  /// Called on the thread when the event has come, or with the error that the device failed with.
  using Done = std::function<void(std::exception_ptr)>;

  /// \throws std::system_error when the thread can't be started.
  explicit CompletionThread(int device, int numa_node = -1);
  /// Waits for what was handed over, then joins.
  ~CompletionThread();
  CompletionThread(const CompletionThread&) = delete;
  CompletionThread& operator=(const CompletionThread&) = delete;

  /// `event` has been recorded. `done` must not throw. Thread-safe.
  void wait_for(cudaEvent_t event, Done done);

 private:
  struct Item {
    cudaEvent_t event = nullptr;
    Done done;  ///< empty: the sign to end
  };
  void work(int device, int numa_node);

  moodycamel::BlockingConcurrentQueue<Item> items_;
  std::thread thread_;
};

}  // namespace slidestream::runtime::cuda
