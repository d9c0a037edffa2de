#include "runtime/cuda/completion.hpp"

#include <new>
#include <utility>

#include "runtime/cuda/check.hpp"
#include "runtime/machine.hpp"

namespace slidestream::runtime::cuda {

CompletionThread::CompletionThread(int device, int numa_node)
    : thread_([this, device, numa_node] { work(device, numa_node); }) {}

CompletionThread::~CompletionThread() {
  items_.enqueue({});
  thread_.join();
}

void CompletionThread::wait_for(cudaEvent_t event, Done done) {
  if (!items_.enqueue({event, std::move(done)})) throw std::bad_alloc();
}

void CompletionThread::work(int device, int numa_node) {
  run_near_node(numa_node);
  std::exception_ptr lost;
  for (;;) {
    Item item;
    items_.wait_dequeue(item);
    if (!item.done) return;
    std::exception_ptr error = lost;
    try {
      if (!lost) {
        SLIDESTREAM_CUDA(cudaSetDevice(device));
        SLIDESTREAM_CUDA(cudaEventSynchronize(item.event));
      }
    } catch (...) {
      // What fails here fails for good: the device's context is lost with all that was on its streams.
      error = lost = std::current_exception();
    }
    item.done(error);
  }
}

}  // namespace slidestream::runtime::cuda
