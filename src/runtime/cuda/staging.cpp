#include "runtime/cuda/staging.hpp"

#include <span>
#include <utility>

#include "runtime/cuda/check.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/machine.hpp"

namespace slidestream::runtime::cuda {
namespace {

HostMemory near_node(std::size_t bytes, int numa_node) {
  HostMemory memory(bytes);
  place_on_node(memory.bytes(), numa_node);
  return memory;
}

}  // namespace

Staging::Staging(std::size_t chunks, std::size_t chunk_bytes, int device, int numa_node,
                 std::function<void(std::chrono::nanoseconds)> copied)
    : device_(device),
      copied_(std::move(copied)),
      memory_(near_node(chunks * chunk_bytes, numa_node)),
      pinned_(memory_.bytes()),
      events_(chunks),
      ring_(memory_.bytes(), chunk_bytes, *this) {}

template <class Put>
void Staging::put(StagingRing::Chunk&& chunk, cudaStream_t stream, const Put& put_copy) {
  const Events& events = events_[chunk.index()];
  Lane& lane = lane_of(chunk.index());
  if (stream == nullptr) stream = lane.stream.get();
  const std::lock_guard lock(lane.mutex);
  SLIDESTREAM_CUDA(cudaEventRecord(events.begun.get(), stream));
  put_copy(stream);
  try {
    SLIDESTREAM_CUDA(cudaEventRecord(events.ended.get(), stream));
  } catch (...) {
    // Nothing would tell when the chunk may be filled again.
    SLIDESTREAM_CUDA_NOEXCEPT(cudaStreamSynchronize(stream));
    throw;
  }
  ring_.leave(std::move(chunk));
}

void Staging::copy(StagingRing::Chunk&& chunk, std::byte* to, std::size_t begin, std::size_t bytes) {
  const std::byte* const from = chunk.memory().subspan(begin, bytes).data();
  put(std::move(chunk), nullptr,
      [&](cudaStream_t stream) { SLIDESTREAM_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream)); });
}

void Staging::copy_rows(StagingRing::Chunk&& chunk, const Rows& rows, cudaStream_t stream) {
  const std::size_t bytes = rows.count * rows.bytes;
  const std::byte* const from = chunk.memory().first(bytes).data();
  const bool is_one_run = rows.count == 1 || rows.pitch == rows.bytes;
  put(std::move(chunk), stream, [&](cudaStream_t on) {
    SLIDESTREAM_CUDA(is_one_run ? cudaMemcpyAsync(rows.to, from, bytes, cudaMemcpyHostToDevice, on)
                                : cudaMemcpy2DAsync(rows.to, rows.pitch, from, rows.bytes, rows.bytes, rows.count,
                                                    cudaMemcpyHostToDevice, on));
  });
}

void Staging::record(cudaEvent_t event) {
  Lane& first = lanes_.front();
  const std::lock_guard lock(first.mutex);
  for (Lane& lane : std::span(lanes_).subspan(1)) {
    SLIDESTREAM_CUDA(cudaEventRecord(lane.put.get(), lane.stream.get()));
    SLIDESTREAM_CUDA(cudaStreamWaitEvent(first.stream.get(), lane.put.get()));
  }
  SLIDESTREAM_CUDA(cudaEventRecord(event, first.stream.get()));
}

void Staging::finish() noexcept {
  for (const Lane& lane : lanes_) SLIDESTREAM_CUDA_NOEXCEPT(cudaStreamSynchronize(lane.stream.get()));
}

bool Staging::has_ended(std::size_t chunk) {
  const DeviceScope scope(device_);
  const cudaError_t state = cudaEventQuery(events_[chunk].ended.get());
  if (state == cudaErrorNotReady) {
    // Not a failure: whoever launches next on this thread mustn't find it.
    static_cast<void>(cudaGetLastError());
    return false;
  }
  SLIDESTREAM_CUDA(state);
  tell(chunk);
  return true;
}

void Staging::wait_for(std::size_t chunk) {
  const DeviceScope scope(device_);
  SLIDESTREAM_CUDA(cudaEventSynchronize(events_[chunk].ended.get()));
  tell(chunk);
}

void Staging::tell(std::size_t chunk) noexcept {
  float milliseconds = 0.0F;
  const Events& events = events_[chunk];
  if (cudaEventElapsedTime(&milliseconds, events.begun.get(), events.ended.get()) == cudaSuccess) {
    const std::chrono::duration<float, std::milli> taken(milliseconds);
    if (copied_) copied_(std::chrono::duration_cast<std::chrono::nanoseconds>(taken));
  } else {
    static_cast<void>(cudaGetLastError());
  }
}

}  // namespace slidestream::runtime::cuda
