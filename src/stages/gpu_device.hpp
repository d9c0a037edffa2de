#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cuda/spectrum/window_engine.hpp"
#include "runtime/cuda/completion.hpp"
#include "runtime/cuda/devices.hpp"
#include "runtime/cuda/resources.hpp"
#include "runtime/host_memory.hpp"
#include "runtime/slot_pool.hpp"
#include "stages/batch.hpp"
#include "stages/gpu.hpp"
#include "stages/gpu_tiles.hpp"

namespace slidestream {

/// How a device's memory is divided, in bytes.
struct DeviceLayout {
  std::size_t slots = 0;
  std::size_t plane = 0;           ///< of a slot: carried and own rows
  std::size_t compressed = 0;      ///< of a slot: as the host's slot; 0: nothing is decoded on the device
  TileLimits tiles;                ///< what a slot's decoder must be ready for
  std::size_t decode_scratch = 0;  ///< of a slot
  std::size_t decode_pinned = 0;   ///< of a slot, on the host
  std::size_t carry = 0;           ///< of each of `slots` + 1 buffers
  std::size_t windows = 0;         ///< of a slot: windows that a batch may complete
  std::size_t bins = 0;
  std::size_t streams = 1;  ///< compute streams
  std::size_t scratch = 0;  ///< of a compute stream's window engine

  /// Counts, clipped, then moments, as they are copied back in one piece.
  std::size_t counts_bytes() const { return (bins + 1) * sizeof(std::uint64_t); }
  std::size_t result_bytes() const { return counts_bytes() + windows * 2 * sizeof(double); }
  std::size_t total() const;
};

/// One GPU of a run, which serves one lane of the graph: its memory, streams and kernels, all taken at the start.
class GpuDevice {
 public:
  /// Takes the device's memory. `engines` are one a compute stream. \throws CudaError.
  GpuDevice(RunContext& context, const runtime::cuda::Device& device,
            std::vector<std::unique_ptr<cuda::WindowEngine>> engines, const DeviceLayout& layout);
  ~GpuDevice();

  void adopt(runtime::SlotPool& slots);
  void prepare(Batch& batch) { slot_of(batch).decoder->describe(batch); }
  void upload(Batch& batch);
  void decode(Batch& batch, GpuSet::Done done);
  void patch(Batch& batch, GpuSet::Done done);
  void compute(Batch& batch, GpuSet::Done done);
  void collect(Batch& batch);

 private:
  /// A slot's part of the device, and where its results come back to.
  struct DeviceSlot {
    std::span<std::byte> plane;
    std::unique_ptr<SlotDecoder> decoder;  ///< null where nothing is decoded on the device
    std::span<std::byte> results;          ///< device
    std::span<std::byte> host_results;     ///< pinned
    runtime::cuda::Event copy_begun;
    runtime::cuda::Event copied;
    // A stream for each slot: decoding is bound by latency, and that of several batches goes on side by side.
    runtime::cuda::Stream decode_stream;
    runtime::cuda::Event decode_begun;
    runtime::cuda::Event decoded;
    runtime::cuda::Event compute_begun;
    runtime::cuda::Event computed;
    std::size_t copied_bytes = 0;
    bool copying = false;   ///< a copy was put on the stream for the present batch
    bool decoding = false;  ///< decoding was put on the stream for the present batch
    bool worked = false;    ///< and everything else, too
  };

  /// Chains go through one each, by turns: small slides don't fill a device, so several are computed side by side.
  struct ComputeStream {
    std::unique_ptr<cuda::WindowEngine> engine;
    std::span<std::byte> scratch;
    runtime::cuda::Stream stream;
  };

  /// Rows between two strips of a chain.
  struct CarryBuffer {
    std::span<std::byte> memory;
    runtime::cuda::Event released;  ///< on the stream of the chain that had it before
    bool was_used = false;
  };

  ComputeStream& stream_of(Chain& chain);
  void enqueue(Batch& batch, DeviceSlot& slot, ComputeStream& on);
  std::byte* carry_buffer(Chain& chain, cudaStream_t stream);
  void release_carry(Chain& chain, cudaStream_t stream);
  static std::byte* own_rows(const Batch& batch, const DeviceSlot& slot);
  void meter_compute(const Batch& batch, const DeviceSlot& slot);
  DeviceSlot& slot_of(const Batch& batch) { return *slots_[batch.slot.index()]; }

  RunContext& context_;
  runtime::cuda::Device device_;
  DeviceLayout layout_;
  runtime::cuda::DeviceArena memory_;
  // Used by `compute` alone, which is serial.
  std::vector<std::unique_ptr<ComputeStream>> compute_streams_;
  std::size_t next_stream_ = 0;
  std::vector<std::unique_ptr<CarryBuffer>> carries_;
  std::vector<int> free_carries_;

  runtime::HostMemory host_memory_;  ///< results and the decoders' part
  runtime::cuda::PinnedRange pinned_memory_;
  std::vector<runtime::cuda::PinnedRange> pinned_slots_;
  std::vector<std::unique_ptr<DeviceSlot>> slots_;
  runtime::cuda::Stream copy_stream_;
  runtime::cuda::CompletionThread decode_completion_;
  runtime::cuda::CompletionThread completion_;
};

}  // namespace slidestream
